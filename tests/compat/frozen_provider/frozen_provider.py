"""A provider as it could be written outside this repository when the kit's interface was frozen.

It is not edited to follow the kit: it is the promise that such providers go on working. It uses the
interface broadly rather than well: every optional method, both kinds of calls, sources, batches,
own options and fields. Its cloud is in memory: hosts, disks, prices, and answers that get lost.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated

from pydantic import Field

import bigfleet_providerkit
from bigfleet_providerkit import (
    Binding,
    Bucket,
    CallRate,
    Capacity,
    CapacityType,
    CommandKind,
    Gone,
    Host,
    HostCommand,
    HostResult,
    InterruptionTable,
    InvalidRequest,
    KitOptions,
    Launch,
    Limits,
    Litter,
    Notice,
    NoticeKind,
    Offering,
    Opt,
    OptionError,
    OutOfCapacity,
    Power,
    PriceKey,
    PriceTable,
    ProviderSpec,
    QuotaExceeded,
    Retryable,
    Source,
    SourceData,
    SubstrateError,
    Timeouts,
    Unauthorized,
)
from bigfleet_providerkit.codec.flat import FlatTags
from bigfleet_providerkit.codec.tags import CLUSTER, MACHINE, OPERATION
from bigfleet_providerkit.kit import Kit
from bigfleet_providerkit.options.units import Duration, TextMap, Words

SMALL, LARGE = "frozen-small", "frozen-large"
ZONE = "frozen-zone"
GIB = 1024**3
POWER = {"running": Power.RUNNING, "stopped": Power.STOPPED}


class CloudError(Exception):
    """What this cloud answers instead of success."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass
class Machine:
    """One host of the cloud."""

    ref: str
    kind: str
    zone: str
    tags: dict[str, str]
    user_data: str
    state: str = "running"


@dataclass
class Cloud:
    """Everything in the account."""

    hosts: dict[str, Machine] = field(default_factory=dict)
    disks: dict[str, dict[str, str]] = field(default_factory=dict)
    done: dict[str, tuple[str, int]] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    lose_next: str = ""
    hourly: float = 0.25
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def create(self, kind: str, zone: str, tags: dict[str, str], user_data: str) -> Machine:
        """A host and its disk; no token, so the same call again makes another."""
        if kind == "sold-out":
            raise CloudError(409, "none left")
        ref = f"h-{next(self.numbers)}"
        self.hosts[ref] = Machine(ref, kind, zone, dict(tags), user_data)
        self.disks[f"d-{ref}"] = dict(tags)
        self._lose("create")
        return self.hosts[ref]

    def delete(self, ref: str) -> None:
        """A host goes, its disk stays."""
        if ref not in self.hosts:
            raise CloudError(404, f"no host {ref}")
        del self.hosts[ref]
        self._lose("delete")

    def start(self, ref: str) -> None:
        """A host gets its power back."""
        self.hosts[ref].state = "running"

    def tag(self, ref: str, tags: dict[str, str]) -> None:
        """Replace the tags of a host."""
        if ref not in self.hosts:
            raise CloudError(404, f"no host {ref}")
        self.hosts[ref].tags = dict(tags)

    def run(self, ref: str, script: str, secret: bytes) -> int:
        """What a host is told to do; the exit code."""
        self.done[ref] = (script, len(secret))
        return 0

    def _lose(self, call: str) -> None:
        self.calls[call] += 1
        if self.lose_next == call:
            self.lose_next = ""
            raise TimeoutError(f"the answer to {call} was lost")


ACCOUNT = Cloud()


class FrozenOptions(KitOptions):
    """The kit's options and this provider's own."""

    account: Annotated[
        str | None, Opt("account of the cloud", "a-1", env=("FROZEN_ACCOUNT",), unset="required")
    ] = None
    secret_key: Annotated[str | None, Opt("its key", secret=True, unset="none")] = None
    zones: Annotated[Words | None, Opt("zones that are used", "a,b", unset="all")] = None
    networks: Annotated[TextMap, Opt("network of each zone", "a=n-1", unset="none")] = Field(
        default_factory=dict
    )
    tag_refresh: Annotated[Duration, Opt("pause between two price lists", "5m")] = 300.0

    def missing(self) -> list[str]:
        """What a real start needs and was not given."""
        return [*super().missing(), *([] if self.account else ["--account"])]


async def check_credentials(options: FrozenOptions) -> None:
    """Say what is missing before anything is tried."""
    if options.account == "closed":
        raise OptionError("the account is closed; give another one")


def classify(error: BaseException) -> SubstrateError | None:
    """The class of an error."""
    if isinstance(error, TimeoutError):
        return Retryable(str(error))
    if not isinstance(error, CloudError):
        return None
    by_status: dict[int, type[SubstrateError]] = {
        401: Unauthorized, 404: Gone, 409: OutOfCapacity, 422: InvalidRequest, 402: QuotaExceeded,
    }  # fmt: skip
    if error.status == 429:
        return Retryable(str(error), throttled=True, after=0.1)
    if error.status == 423:
        return Retryable(str(error), refused=True)
    kind = by_status.get(error.status)
    return kind(str(error)) if kind else None


class FrozenSubstrate:
    """The cloud of this provider."""

    def __init__(self, kit: Kit, cloud: Cloud, options: FrozenOptions) -> None:
        self._kit = kit
        self._cloud = cloud
        self._flat = FlatTags(kit.codec)
        self.notices: asyncio.Queue[Notice] = asyncio.Queue()
        self.served = self.closed = False
        self.accepted: list[str] = []
        kit.http_post("/internal/notice", options.secret_key or "", self._take_notice)

    async def launch(self, order: Launch) -> Host:
        """Order one host, once, and wait until it runs."""
        if order.tags[self._kit.codec.key(MACHINE)] == "":
            raise InvalidRequest("an order has its machine's id")

        async def create() -> Host:
            made = await self._kit.acall("Create", lambda: self._make(order), once=True)
            return self._read(made)

        host = await self._kit.launch_once(order, lambda: self._kit.find(order), create)
        running = await self._kit.until_running(host)
        return running.with_notes(network=order.extra.get("network", ""))

    async def terminate(self, host: Host) -> None:
        """Return when the host is gone."""

        async def send(refs: Sequence[str]) -> None:
            for ref in refs:
                await self._kit.call("Delete", self._cloud.delete, ref)

        try:
            await self._kit.batched("Delete", host.ref, send)
        except Gone:
            self._kit.log.debug("host was gone already", ref=host.ref)
        await self._kit.until_gone(host)

    async def list_managed(self, refs: Sequence[str] | None = None) -> Sequence[Host]:
        """All hosts with our label, or exactly these."""
        rows = await self._kit.call("List", lambda: list(self._cloud.hosts.values()))
        if refs is not None:
            return [self._read(row) for row in rows if row.ref in refs]
        return [self._read(row) for row in rows if self._kit.codec.ours(row.tags)]

    async def ensure_running(self, host: Host) -> None:
        """Give a host its power back."""
        await self._kit.call("Start", self._cloud.start, host.ref)
        await self._kit.until_running(host)

    async def run_on_host(self, host: Host, command: HostCommand) -> HostResult:
        """Run the kit's script on the host."""
        if command.kind is CommandKind.PROBE:
            return HostResult(1)
        script, secret = command.script, command.secret
        code = await self._kit.call(
            command.kind.name.title(), self._cloud.run, host.ref, script, secret
        )
        return HostResult(code, stdout="", stderr="")

    async def set_binding(self, host: Host, binding: Binding) -> None:
        """Write the complete tag set."""
        present = self._cloud.hosts[host.ref].tags if host.ref in self._cloud.hosts else {}
        tags = self._kit.codec.merged(present, binding)
        await self._kit.call("Tag", self._cloud.tag, host.ref, tags)

    async def node_ready(self, host: Host, cluster: str) -> bool:
        """This cloud sees nodes itself."""
        return host.ref in self._cloud.done and cluster != "never"

    async def interruptions(self) -> AsyncIterator[Notice]:
        """Notices as they come."""
        while True:
            yield await self.notices.get()

    async def missing_permissions(self) -> Sequence[str]:
        """Nothing is ever missing here."""
        return []

    async def accept(self, offerings: Sequence[Offering]) -> None:
        """Look at what is offered."""
        for offering in offerings:
            if offering.disk_gb > 1000:
                raise OptionError(f"{offering.instance_type}: disks have at most 1000 GB")
        self.accepted = [offering.instance_type for offering in offerings]

    async def leftovers(self) -> Sequence[Litter]:
        """Disks whose host is gone."""
        rows = await self._kit.call("Disks", lambda: dict(self._cloud.disks))
        return [
            Litter(ref, "disk", 0.0, tags.get(self._kit.codec.key(OPERATION), ""))
            for ref, tags in rows.items()
            if self._kit.codec.ours(tags) and ref.removeprefix("d-") not in self._cloud.hosts
        ]

    async def discard(self, litter: Litter) -> None:
        """Remove a disk."""
        await self._kit.call("Disks", lambda: self._cloud.disks.pop(litter.ref, None))

    async def serve(self) -> None:
        """Nothing listens here."""
        self.served = True

    async def renew_credentials(self) -> None:
        """There is nothing to renew."""

    async def aclose(self) -> None:
        """Let go of nothing."""
        self.closed = True

    async def source(self) -> SourceData:
        """Prices and shapes."""
        price = await self._kit.call("Prices", lambda: self._cloud.hourly)
        key = PriceKey(SMALL, ZONE, CapacityType.ON_DEMAND)
        return SourceData(prices={key: price}, capacities={SMALL: Capacity(2000, 8 * GIB)})

    async def _take_notice(self, body: Mapping[str, object]) -> Mapping[str, object]:
        notice = Notice(str(body["ref"]), NoticeKind.WARNING, 0.9, self._kit.clock.now(), None)
        await self.notices.put(notice)
        return {"taken": True}

    async def _make(self, order: Launch) -> Machine:
        assert self._flat.read(self._flat.names(order.tags)) == dict(order.tags)
        return self._cloud.create(
            order.instance_type, order.zone, dict(order.tags), order.user_data
        )

    def _read(self, row: Machine) -> Host:
        codec = self._kit.codec
        return Host(
            ref=row.ref,
            machine_id=codec.read(row.tags, MACHINE) or "",
            operation_id=codec.read(row.tags, OPERATION) or "",
            instance_type=row.kind,
            zone=row.zone,
            capacity_type=codec.capacity_type(row.tags),
            power=POWER[row.state],
            cluster=codec.read(row.tags, CLUSTER),
            provider_id=f"frozen:///{row.ref}",
        )


async def open_substrate(options: FrozenOptions, kit: Kit) -> FrozenSubstrate:
    """Connect to the cloud."""
    return FrozenSubstrate(kit, ACCOUNT, options)


def mix(options: FrozenOptions) -> Sequence[Bucket]:
    """On demand and spot."""
    return [
        Bucket({"kind": SMALL, "place": ZONE, "capacity_type": "on_demand"}, share=2),
        Bucket({"kind": SMALL, "place": ZONE, "capacity_type": "spot"}),
    ]


SPEC = ProviderSpec(
    name="frozen",
    version="1.0.0",
    options=FrozenOptions,
    open=open_substrate,
    mix=mix,
    prices=PriceTable.flat(date(2026, 11, 1), {SMALL: 0.20, LARGE: 0.80}, spot_fraction=0.3),
    shapes={SMALL: Capacity(2000, 8 * GIB), LARGE: Capacity(8000, 32 * GIB, arch="arm64")},
    interruption=InterruptionTable({SMALL: 0.05}, horizon="hour", otherwise=0.1),
    classify=classify,
    credentials=check_credentials,
    region=lambda options: "frozen-region",
    region_of=lambda options, zone: "frozen-region",
    type_names=("kind",),
    zone_names=("place",),
    extra_fields=("network",),
    capacity_types=frozenset({CapacityType.ON_DEMAND, CapacityType.SPOT}),
    delete_offered=lambda offerings: True,
    timeouts=Timeouts(create=60, configure=60, drain=60, delete=60, create_of={"*.metal": 120}),
    poll_interval=0.02,
    sources=lambda options: (Source("prices", options.tag_refresh, lambda cloud: cloud.source()),),
    heal_after=300.0,
    reserve=lambda shape: {"cpu": "100m", "memory": "256Mi"},
    currency="USD",
    limits=Limits(
        tag_key=64, tag_value=180, tag_alphabet="[a-z0-9:_-]*", separator=":", name=63,
        user_data=64 * 1024, blob=1024 * 1024,
    ),
    consistency_window=0.05,
    calls=(
        CallRate(("Create", "Delete", "Start", "Tag"), rate=500, burst=100),
        "List", "Disks", "Prices", "Configure", "Drain",
    ),
    first_boot="cloud-init",
)  # fmt: skip


if __name__ == "__main__":
    bigfleet_providerkit.main(SPEC)
