"""The production shard on the simulation's ports, and what a run wants to know of it.

Nothing of the shard is replaced: its ports are the simulation's, and a look is taken at every order
it takes and at every change of its book.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from bigfleet.decision import Reason
from bigfleet.model import Machine, MachineState, Resources
from bigfleet.model.columns import Symbols
from bigfleet.provider import ProviderClient, ProviderSite
from bigfleet.shard.act.executor import EnqueueResult, Executor
from bigfleet.shard.machines.book import Book
from bigfleet.shard.machines.orders import Order
from bigfleet.shard.server import shard as product
from bigfleet.shard.server.settings import ShardConfig
from bigfleet.shard.server.shard import Count, Shard
from bigfleet.shard.state.ownership import OwnershipFile
from bigfleet.wire.fencing import FencingStamps
from sim.calls import SimCalls
from sim.coordinators import NAME as COORDINATOR
from sim.coordinators import SimCaller
from sim.handle import RowKey, RowVerdict
from sim.ports import SimOffload
from sim.process import Process
from sim.streams import BrokenError, ShardEnd
from sim.world import REGION, Mounted, World

_QUICK = 0.002
_DECIDING = 0.05


class Life:
    """One life of a shard."""

    kind: type[Shard] = Shard

    def __init__(self, world: World, process: Process, disk: Mounted) -> None:
        self.process = process
        self._world = world
        self._disk = disk
        self._shard: Shard | None = None
        self.host = disk.host
        self._no_book = Book(Symbols(), self.host.clock)

    async def run(self) -> None:
        """Read the disk, then live."""
        shard = self._shard = await self.kind.open(self._tuning(), self._ports())
        self._watch(shard)
        await shard.run()

    async def serve(self, stream: ShardEnd) -> None:
        """One session to its end."""
        if self._shard is None:
            raise BrokenError("the shard is starting")
        await self._shard.sessions.serve(stream)

    # -- what is known of it ---------------------------------------------------------------------

    @property
    def book(self) -> Book:
        """Its machines; none while it starts."""
        return self._no_book if self._shard is None else self._shard.book

    @property
    def ownership(self) -> OwnershipFile | None:
        """Which machines are its own; None while it starts."""
        return None if self._shard is None else self._shard.ownership

    def partial(self) -> bool:
        """Whether it decides without having heard of all its providers, after waiting for them."""
        return self._shard is not None and bool(self._shard.unheard())

    def reported(self, cluster: str) -> bool:
        """Whether it has heard of the cluster's demand, in this life."""
        return self._shard is not None and self._shard.needs.has_reported(cluster)

    def configured(self, cluster: str) -> int:
        """How many machines it counts as Configured for a cluster."""
        return sum(
            known.state is MachineState.CONFIGURED and known.cluster == cluster
            for name in self.book.bound(cluster)
            if (known := self.book.get(name)) is not None
        )

    def priorities(self, cluster: str) -> Collection[int]:
        """Of the rows a cluster asks for."""
        rows = [] if self._shard is None else self._shard.needs.rows(cluster)
        return {row.profile.priority for row in rows}

    def connected(self, cluster: str) -> bool:
        """Whether the cluster has a session."""
        return self._shard is not None and self._shard.sessions.connected(cluster)

    def demanded(self, cluster: str) -> Mapping[RowKey, Resources]:
        """What it believes the cluster asks for."""
        rows = [] if self._shard is None else self._shard.needs.rows(cluster)
        return {(cluster, *row.key): row.aggregate for row in rows}

    def waiting(self) -> int:
        """Actions that are queued or running."""
        if self._shard is None:
            return 0
        return self._shard.executor.depth + self._shard.executor.inflight

    def fenced(self) -> bool:
        """Whether a provider takes it for outlived, so that it acts no more in this life."""
        return self._shard is not None and bool(self._shard.executor.fenced)

    def verdicts(self) -> Mapping[RowKey, RowVerdict]:
        """What the last cycle says of every row of demand."""
        views = None if self._shard is None else self._shard.outputs.views
        if views is None:
            return {}
        plan, found = views.plan, {}
        v = plan.verdicts
        for row in range(len(v)):
            told = RowVerdict(bool(v.satisfied[row]), Reason(int(v.reason[row])).name)
            for member in v.members[v.members_at[row] : v.members_at[row + 1]].tolist():
                need = plan.demand.need(member)
                found[(need.cluster, *need.key)] = told
        return found

    # -- putting it together ---------------------------------------------------------------------

    def _tuning(self) -> ShardConfig:
        name, gap = self.host.name, self._world.plan.cycle_gap
        if self._world.coordinator is not None:
            return ShardConfig(
                name, f"{name}:7780", (), (COORDINATOR,), min_cycle_gap=gap, unused_identities=0
            )
        sites = [ProviderSite(name, f"{name}:9001", REGION) for name in self._world.providers]
        return ShardConfig(name, providers=tuple(sites), min_cycle_gap=gap, unused_identities=0)

    def _ports(self) -> product.ShardEnvironment:
        world, process, disk = self._world, self.process, self._disk
        rng, coordinator, clock = world.rng(process.name), world.coordinator, self.host.clock
        return product.ShardEnvironment(
            clock=clock,
            disk=disk,
            offload=SimOffload(process, disk, rng, seconds=_QUICK),
            decide_in=SimOffload(process, disk, rng, seconds=_DECIDING),
            explain_in=SimOffload(process, disk, rng, seconds=_QUICK),
            rng=rng,
            connect=self._connect,
            timer=clock.monotonic,
            cpu=lambda: 0.0,
            caller=None if coordinator is None else SimCaller(self.host.name, coordinator, world),
        )

    def _connect(self, site: ProviderSite, stamps: FencingStamps, count: Count) -> ProviderClient:
        world = self._world
        calls = SimCalls(
            self.process, self.host.name, world.providers[site.name], world.network, world
        )
        return ProviderClient(site, stamps, calls, count)

    def _watch(self, shard: Shard) -> None:
        shard.book.on_change.append(self._changed)
        _Spy(shard.executor, self._ordered)
        shard.ownership.on_change.append(self._owns)
        self._world.owners.changed(None)

    def _owns(self, moved: frozenset[str] | None) -> None:
        told = "all" if moved is None else ", ".join(sorted(moved))
        self._world.trace.note(self.process.name, f"looks again whose is {told}")
        if self.host.life is self:
            self._world.owners.changed(moved)

    def _changed(self, before: Machine | None, after: Machine | None) -> None:
        self._world.monitor.book_changed(self, before, after)
        if before is None and after is not None and self.host.life is self:
            self._world.owners.booked(self.host, after.id)

    def _ordered(self, orders: Sequence[Order]) -> None:
        self._world.monitor.ordered(self, orders, self._world.loop.time())


class _Spy:
    """Looks at what an executor takes."""

    def __init__(self, executor: Executor, see: Callable[[Sequence[Order]], None]) -> None:
        self._enqueue = executor.enqueue
        self._see = see
        executor.enqueue = self.enqueue  # type: ignore[method-assign]

    def enqueue(self, orders: Sequence[Order], cycle: int) -> EnqueueResult:
        """As the executor's own."""
        enqueued = self._enqueue(orders, cycle)
        self._see(enqueued.accepted)
        return enqueued


def build(world: World, process: Process, disk: Mounted) -> Life:
    """A life of the shard as it is."""
    return Life(world, process, disk)
