"""`bigfleet-fault-provider`: the real kit on a substrate that fails on command.

It simulates bad substrates for certification; what fails is chosen by a slot's label or by the name
of the cluster a machine is bound to:

    label conformance.fault/create=error | stockout   the launch is refused
    fault-error, fault-drain-error                    Configure, Drain fail at once
    fault-timeout                                     Configure hangs until it is cancelled
    fault-slow-ok                                     ... ignores that and succeeds 1 s late
    fault-readiness-block, fault-join-late            the node is never Ready; is Ready after 1.2 s
    fault-lose-host, fault-lose-idle                  the host vanishes 0.5 s after it was bound;
                                                      0.5 s after it was drained
"""

import asyncio
from datetime import date
from typing import Annotated

from pydantic import Field

from bigfleet_providerkit.errors import HookFailed, InvalidRequest, OutOfCapacity
from bigfleet_providerkit.kit import Kit
from bigfleet_providerkit.machines.state import CapacityType
from bigfleet_providerkit.memory.substrate import MemorySubstrate
from bigfleet_providerkit.options.model import KitOptions, Opt
from bigfleet_providerkit.options.units import Duration
from bigfleet_providerkit.spec import Bucket, InterruptionTable, PriceTable, ProviderSpec
from bigfleet_providerkit.substrate import (
    Binding,
    Capacity,
    CommandKind,
    Host,
    HostCommand,
    HostResult,
    Launch,
)
from bigfleet_providerkit.version import __version__

LATE = 1.0
LOSE_AFTER = 0.5
REGISTERED, READY = 0.3, 1.2
FOREVER = 86_400.0


class FaultOptions(KitOptions):
    """The kit's options with the defaults that certification wants."""

    seed_count: Annotated[int, Field(ge=0), Opt("slots beside the create-fault ones", "64")] = 64
    transition_timeout: Annotated[
        Duration | None, Opt("one limit for all four transitions", "2s")
    ] = 2.0
    reconcile_interval: Annotated[
        Duration, Opt("pause between two looks at all hosts; 0 = off", "500ms")
    ] = 0.5
    failed_cleanup_after: Annotated[
        Duration | None,
        Opt("time after which a failed slot is free again; 0 = never", "2s",
            aliases=("heal-after",)),
    ] = 0.0  # fmt: skip
    poll_interval: Annotated[
        Duration | None, Opt("pause between two looks at something under way", "50ms")
    ] = 0.05


class FaultSubstrate(MemorySubstrate):
    """Hosts in memory that fail when their slot or cluster says so."""

    def __init__(self, kit: Kit, *, slow: float = 0.0) -> None:
        super().__init__(kit, slow=slow)
        self._losses: set[asyncio.Task[None]] = set()

    async def launch(self, order: Launch) -> Host:
        """Refused where the slot's label says so."""
        fault = order.extra.get("fault")
        if fault == "error":
            raise InvalidRequest(f"launch of {order.instance_type} is refused on command")
        if fault == "stockout":
            raise OutOfCapacity(f"no {order.instance_type} is left in {order.zone}, on command")
        return await super().launch(order)

    async def run_on_host(self, host: Host, command: HostCommand) -> HostResult:
        """Fails, hangs or comes late where the cluster says so."""
        cluster = command.cluster
        if command.kind is CommandKind.CONFIGURE:
            if cluster == "fault-error":
                raise HookFailed("configure fails on command")
            if cluster == "fault-timeout":
                await self._kit.clock.sleep(FOREVER)
            if cluster == "fault-slow-ok":
                await self._stubborn(command.limit + LATE)
        if command.kind is CommandKind.DRAIN and cluster == "fault-drain-error":
            raise HookFailed("drain fails on command")
        result = await super().run_on_host(host, command)
        if command.kind is CommandKind.CONFIGURE and result.exit_code == 0:
            delay = {"fault-readiness-block": FOREVER, "fault-join-late": READY}.get(cluster, 0.0)
            self.hosts[host.ref].ready_at += delay
        return result

    async def set_binding(self, host: Host, binding: Binding) -> None:
        """The moment from which a host is lost later on."""
        before = self.hosts[host.ref].cluster if host.ref in self.hosts else None
        await super().set_binding(host, binding)
        bound = binding.cluster == "fault-lose-host" and before != binding.cluster
        drained = before == "fault-lose-idle" and binding.cluster is None
        if bound or drained:
            loss = asyncio.get_running_loop().create_task(self._lose_later(host.ref))
            self._losses.add(loss)
            loss.add_done_callback(self._losses.discard)

    async def aclose(self) -> None:
        """A provider that has stopped loses no hosts."""
        for loss in self._losses:
            loss.cancel()

    async def _lose_later(self, ref: str) -> None:
        await self._kit.clock.sleep(LOSE_AFTER)
        await self.lose(ref)

    async def _stubborn(self, seconds: float) -> None:
        """Wait, also when the process should stop."""
        ends = self._kit.clock.monotonic() + seconds
        while (left := ends - self._kit.clock.monotonic()) > 0:
            try:
                await self._kit.clock.sleep(left)
            except asyncio.CancelledError:
                continue


async def open_substrate(options: FaultOptions, kit: Kit) -> FaultSubstrate:
    """The substrate that fails."""
    return FaultSubstrate(kit, slow=options.slow_ms / 1000)


def _slot(kind: str, **fields: object) -> dict[str, object]:
    shape = {"cpu": "4", "memory": "16Gi"}
    return {
        "instance_type": "fault-standard-4", "zone": "fault-zone-a", "capacity_type": kind,
        "resources": shape, "allocatable": shape, **fields,
    }  # fmt: skip


def _create_fault(fault: str) -> dict[str, object]:
    labels = {"conformance.fault/create": fault}
    return _slot("on_demand", instance_type="fault-create-4", labels=labels, fault=fault)


SPEC = ProviderSpec(
    name="fault",
    version=__version__,
    options=FaultOptions,
    open=open_substrate,
    mix=(
        Bucket(_slot("on_demand"), share=2),
        Bucket(_slot("spot"), share=1),
        Bucket(_create_fault("error"), count=8),
        Bucket(_create_fault("stockout"), count=4, first=8),
    ),
    prices=PriceTable.flat(
        date(2026, 11, 1),
        {"fault-standard-4": 0.40, "fault-create-4": 0.40},
        spot_fraction=0.3,
    ),
    shapes={
        "fault-standard-4": Capacity(4000, 16 * 1024**3),
        "fault-create-4": Capacity(4000, 16 * 1024**3),
    },
    interruption=InterruptionTable({"fault-standard-4": 0.05}),
    region=lambda options: "",
    capacity_types=frozenset({CapacityType.ON_DEMAND, CapacityType.SPOT}),
    extra_fields=("fault",),
    consistency_window=0.0,
    always_fake=True,
    program="bigfleet-fault-provider",
)


def main() -> None:
    """The executable."""
    from bigfleet_providerkit.main import main as run

    run(SPEC)
