"""A cloud that exists only in this process, with settings for delays and failures.

It behaves like a real one where it matters: launches are idempotent on their token, hosts outlive
the provider (they are kept in the store, written before launch returns), nodes join clusters,
tags can be lost. Tests and the in-tree fake pull its levers: `lose`, `stop`, `stock_out`,
`fail_next`, `set_price`, `notify`, and delays by kind.
"""

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence

import msgspec

from bigfleet_providerkit.catalogue.sources import SourceData
from bigfleet_providerkit.errors import Gone, OutOfCapacity, Retryable, SubstrateError
from bigfleet_providerkit.kit import Kit
from bigfleet_providerkit.machines.state import CapacityType
from bigfleet_providerkit.substrate import (
    Binding,
    CommandKind,
    Host,
    HostCommand,
    HostResult,
    Launch,
    Notice,
    NoticeKind,
    Power,
    PriceKey,
)


class MemoryHost(msgspec.Struct, omit_defaults=True):
    """A host in the store."""

    ref: str
    machine: str
    operation: str
    instance_type: str
    zone: str
    capacity_type: int
    created: float
    power: str = "running"
    tagged: bool = True
    cluster: str | None = None
    joined: str | None = None
    ready_at: float = 0.0
    done: str = ""
    managed: bool = True


_read = msgspec.msgpack.Decoder(MemoryHost).decode
_write = msgspec.msgpack.Encoder().encode


class MemorySubstrate:
    """Hosts in a dictionary."""

    def __init__(
        self,
        kit: Kit,
        *,
        slow: float = 0.0,
        fail_rate: Mapping[str, float] | None = None,
        seed: int = 1,
    ) -> None:
        self._kit = kit
        self._rng = random.Random(seed)
        self._fail_rate = dict(fail_rate or {})
        self.delays = dict.fromkeys(("create", "configure", "drain", "delete"), slow)
        self.hosts = {ref: _read(value) for ref, value in kit.kv_shelf.items().items()}
        self.launches = 0
        self._by_operation = {host.operation: host.ref for host in self.hosts.values()}
        self._gone_from: set[tuple[str, str]] = set()
        self._next_errors: dict[str, deque[SubstrateError]] = {}
        self._prices: dict[PriceKey, float] = {}
        self._notices: asyncio.Queue[Notice] = asyncio.Queue()

    # What a Substrate does.

    async def launch(self, order: Launch) -> Host:
        """A host, at once or after the delay; it exists from the first moment on."""
        known = self._by_operation.get(order.operation_id)
        if known is None:
            self._refuse("create")
            if (order.instance_type, order.zone) in self._gone_from:
                raise OutOfCapacity(f"no {order.instance_type} is left in {order.zone}")
            known = f"i-{order.operation_id}"
            host = MemoryHost(
                known, order.machine_id, order.operation_id, order.instance_type, order.zone,
                int(order.capacity_type), self._kit.clock.now(),
            )  # fmt: skip
            self.launches += 1
            self._by_operation[order.operation_id] = known
            self.hosts[known] = host
            await self._keep(host)
        await self._delay("create")
        if known not in self.hosts:
            raise Gone(f"host {known} went away while it was starting")
        return self._shown(self.hosts[known])

    async def terminate(self, host: Host) -> None:
        """The host and everything about it is gone; absent is success."""
        self._refuse("delete")
        await self._delay("delete")
        await self._drop(host.ref)

    async def list_managed(self, refs: Sequence[str] | None = None) -> Sequence[Host]:
        """All managed hosts, or exactly these."""
        if refs is not None:
            return [self._shown(self.hosts[ref]) for ref in refs if ref in self.hosts]
        shown = []
        for number, host in enumerate(list(self.hosts.values())):
            if number % 500 == 499:
                await asyncio.sleep(0)
            if host.managed and host.tagged:
                shown.append(self._shown(host))
        return shown

    async def ensure_running(self, host: Host) -> None:
        """Power on."""
        present = self.hosts.get(host.ref)
        if present is None:
            raise Gone(f"there is no host {host.ref}")
        present.power = "running"
        await self._keep(present)

    async def run_on_host(self, host: Host, command: HostCommand) -> HostResult:
        """What the hook would do: join, leave, or say what it did last."""
        present = self.hosts.get(host.ref)
        if present is None:
            raise Gone(f"there is no host {host.ref}")
        if present.power != "running":
            raise Retryable(f"host {host.ref} is {present.power}")
        if command.kind is CommandKind.PROBE:
            return HostResult(0 if present.done == command.operation_id else 1)
        self._refuse(command.kind)
        if command.kind is CommandKind.CONFIGURE:
            if present.joined not in (None, command.cluster):
                return HostResult(4, stderr=f"the host belongs to cluster {present.joined}")
            await self._delay("configure")
            present.joined, present.ready_at = command.cluster, self._kit.clock.now()
        else:
            await self._delay("drain")
            present.joined = None
        present.done = command.operation_id
        await self._keep(present)
        return HostResult(0)

    async def set_binding(self, host: Host, binding: Binding) -> None:
        """The complete tag set."""
        present = self.hosts.get(host.ref)
        if present is None:
            raise Gone(f"there is no host {host.ref}")
        present.tagged, present.machine = True, binding.machine_id
        present.operation, present.cluster = binding.operation_id, binding.cluster
        await self._keep(present)

    async def source_data(self) -> SourceData:
        """What `set_price` said; nothing beyond the pinned shapes."""
        return SourceData(prices=dict(self._prices))

    async def node_ready(self, host: Host, cluster: str) -> bool:
        """Whether the host has joined that cluster and its node is Ready."""
        present = self.hosts.get(host.ref)
        if present is None or present.joined != cluster:
            return False
        return self._kit.clock.now() >= present.ready_at

    async def interruptions(self) -> AsyncIterator[Notice]:
        """What `notify` said."""
        while True:
            yield await self._notices.get()

    # Levers.

    async def lose(self, ref: str) -> None:
        """The host is gone, without anybody having asked for it."""
        await self._drop(ref)

    async def stop(self, ref: str, power: Power = Power.STOPPED) -> None:
        """The host is there and does not run."""
        self.hosts[ref].power = str(power)
        await self._keep(self.hosts[ref])

    async def untag(self, ref: str) -> None:
        """A person removed the host's tags."""
        self.hosts[ref].tagged = False
        await self._keep(self.hosts[ref])

    async def plant(self, host: MemoryHost) -> None:
        """A host that this provider did not launch."""
        self.hosts[host.ref] = host
        await self._keep(host)

    def stock_out(self, instance_type: str, zone: str) -> None:
        """No more of this type in this zone."""
        self._gone_from.add((instance_type, zone))

    def restock(self, instance_type: str, zone: str) -> None:
        """There is some again."""
        self._gone_from.discard((instance_type, zone))

    def fail_next(self, kind: str, *errors: SubstrateError) -> None:
        """The next calls of a kind (create, configure, drain, delete) fail like this."""
        self._next_errors.setdefault(kind, deque()).extend(errors)

    def set_price(self, instance_type: str, place: str, kind: CapacityType, price: float) -> None:
        """A live price, seen by the next refresh."""
        self._prices[PriceKey(instance_type, place, kind)] = price

    def notify(
        self, ref: str, kind: NoticeKind, probability: float, ends: float | None = None
    ) -> None:
        """Announce something about a host."""
        now = self._kit.clock.now()
        self._notices.put_nowait(Notice(ref, kind, probability, now, ends))

    # Inside.

    def _refuse(self, kind: str) -> None:
        errors = self._next_errors.get(kind)
        if errors:
            raise errors.popleft()
        rate = self._fail_rate.get(kind, 0.0)
        if rate and self._rng.random() < rate:
            raise SubstrateError(f"{kind} failed by chance, as --fail-rate asked")

    async def _delay(self, kind: str) -> None:
        if self.delays[kind] > 0:
            await self._kit.clock.sleep(self.delays[kind])

    async def _keep(self, host: MemoryHost) -> None:
        await self._kit.kv_shelf.put(host.ref, _write(host))

    async def _drop(self, ref: str) -> None:
        host = self.hosts.pop(ref, None)
        if host is not None:
            self._by_operation.pop(host.operation, None)
            await self._kit.kv_shelf.put(ref, None)

    def _shown(self, host: MemoryHost) -> Host:
        return Host(
            ref=host.ref,
            machine_id=host.machine if host.tagged else "",
            operation_id=host.operation if host.tagged else "",
            instance_type=host.instance_type,
            zone=host.zone,
            capacity_type=CapacityType(host.capacity_type),
            power=Power(host.power),
            cluster=host.cluster,
            created=host.created,
            address="127.0.0.1",
        )
