"""Everything of one seed, put together: providers, clusters, a network, and shards on their hosts.

How a shard is built is passed in, so that tests can build one with a bug. Where there are several
shards, a coordinator says whose is what.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final

from bigfleet.coordinator.state import (
    AddShard,
    AssignDomain,
    Command,
    MovePhase,
    ProviderEntry,
    RegisterProvider,
    SetQuota,
)
from bigfleet.model import LABEL_ZONE
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_lab.simcluster.cluster import SimCluster
from bigfleet_lab.simcluster.operator import SimOperator
from sim.coordinators import CoordinatorHost
from sim.drawing import SHARD, ZONES, Plan
from sim.hosts import Build, Host, Mounted, ShardLife
from sim.injecting import Injector
from sim.loop import VirtualLoop
from sim.monitor import Monitor
from sim.network import NOWHERE, Network
from sim.owners import Owners
from sim.ports import NANO, SimClock, SimDisk
from sim.process import Process
from sim.provider import ModelProvider, Request
from sim.slots import Kind
from sim.streams import Dialling, Switchboard
from sim.trace import Trace

__all__ = ["REGION", "Build", "Mounted", "ShardLife", "TrueClock", "World"]

REGION: Final = "r1"
PHANTOM_SECONDS: Final = 1020.0
"""By then a machine whose node died counts for no need, and what that leads to has begun: 900 s
after its cluster told, which may have to notice first that its shard died, and to come back."""


class TrueClock(SimClock):
    """The clock that is never set."""

    def in_seconds(self, seconds: float) -> int:
        """A time to come, in Unix nanoseconds."""
        return self.now() + int(seconds * NANO)


class World:
    """One seed, running. Make it inside its loop."""

    def __init__(self, plan: Plan, loop: VirtualLoop, trace: Trace, build: Build) -> None:
        self.plan, self.loop, self.trace = plan, loop, trace
        self.true_clock = TrueClock()
        self.monitor = Monitor(trace)
        if not plan.faults:
            self.monitor.calm_since = 0.0
        self.network = Network(self.rng("network"), trace)
        self.board = Switchboard(self.network)
        self.providers = {
            drawn.name: ModelProvider(drawn.name, drawn.slots(), self.rng(drawn.name), trace)
            for drawn in plan.providers
        }
        for provider in self.providers.values():
            provider.watch = self.monitor
        self.operators: dict[str, SimOperator] = {}
        self.injector = Injector(self)
        self.owners = Owners(self)
        self.coordinator = CoordinatorHost(self) if len(plan.shards) > 1 else None
        self.hosts = {
            name: Host(self, name, build, "" if name == SHARD else f"-{name}")
            for name in plan.shards
        }
        self.phantoms_until = 0.0
        """Until then a node that died may still count as a machine that serves."""

    def await_phantoms(self) -> None:
        """Nodes died, or a shard that will hear of dead ones begins to count the time again."""
        self.phantoms_until = max(self.phantoms_until, self.loop.time() + PHANTOM_SECONDS)

    def rng(self, name: str) -> Random:
        """A source of chance of its own for each part."""
        return Random(f"{name}-{self.plan.seed}")

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Something that happens whatever lives or dies."""
        self.loop.call_later(seconds, action, context=NOWHERE)

    # -- shards ----------------------------------------------------------------------------------

    @property
    def first(self) -> Host:
        """The host of the first shard, which most runs have no other of."""
        return self.hosts[SHARD]

    @property
    def shard(self) -> ShardLife:
        """The newest life of the first shard."""
        return self.first.life

    @property
    def lives(self) -> list[ShardLife]:
        """All lives of the first shard."""
        return self.first.lives

    @property
    def disk(self) -> SimDisk:
        """The first shard's."""
        return self.first.disk

    @property
    def shard_clock(self) -> SimClock:
        """The first shard's."""
        return self.first.clock

    def start_shard(self) -> None:
        """A new life of the first shard, on the same disk."""
        self.first.start()

    def stop_shard(self) -> None:
        """Ask the first shard to stop, for good."""
        self.first.stop()

    def host(self, name: str) -> Host:
        """The host of a shard; of the first one where none is named."""
        return self.hosts.get(name, self.first)

    def host_of(self, cluster: str) -> Host:
        """The host whose shard a cluster calls."""
        return self.hosts[self.plan.shard_of(cluster)]

    def sends(self, process: Process, kind: Kind, request: Request) -> None:
        """A mutation leaves a shard."""
        self.monitor.sends(process, kind, request)
        self.hosts[process.name.partition(".")[0]].sends(process)

    def answered(self, process: Process, machine_id: str) -> None:
        """Its sender no longer waits."""
        self.monitor.answered(process, machine_id)

    async def start_fleet(self) -> None:
        """The coordinator, if there is one, told who owns what; then all shards."""
        if self.coordinator is not None:
            self.coordinator.start()
            await self.coordinator.apply(*self._administered())
        for host in self.hosts.values():
            host.start()

    def moves_done(self) -> int:
        """Moves between shards that were carried out and are still known."""
        known = [] if self.coordinator is None else self.coordinator.stored_moves()
        return sum(move.phase is MovePhase.DONE for move in known)

    def _administered(self) -> list[Command]:
        """What an administrator sets up before the shards of a fleet are started."""
        commands: list[Command] = [AddShard(name, f"{name}:7780") for name in self.hosts]
        for zone, name in zip(ZONES, self.hosts, strict=False):
            commands.append(AssignDomain(LABEL_ZONE, zone, name))
        for name in self.providers:
            commands.append(RegisterProvider(ProviderEntry(name, f"{name}:9001", REGION)))
            if self.plan.quota_share:
                slots = len(self.providers[name].slots)
                each = max(1, int(slots * self.plan.quota_share / len(self.hosts)))
                commands.append(SetQuota(name, REGION, dict.fromkeys(self.hosts, each)))
        return commands

    # -- clusters --------------------------------------------------------------------------------

    def start_clusters(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """All clusters, each calling when its time has come."""
        dial = Dialling(self.board, self.plan.shard_of)
        tasks = []
        for drawn in self.plan.clusters:
            rng = self.rng(drawn.name)
            cluster = SimCluster(
                drawn.name, drawn.workload(), self.true_clock, rng, drawn.behaviour
            )
            self._watch_demand(cluster)
            operator = SimOperator(cluster, dial, rng)
            self.operators[drawn.name] = operator
            run = operator.run(drawn.joins_after, drawn.steps)
            tasks.append(group.create_task(run, name=drawn.name))
        return tasks

    def _watch_demand(self, cluster: SimCluster) -> None:
        workload, seen = cluster.workload, dict[str, int]()
        seen.update((name, workload.replicas(name)) for name in workload.names)

        def changed(name: str) -> None:
            now = workload.replicas(name)
            self.trace.note(cluster.id, f"wants {now} of {name}")
            # A gang that outgrows its domain moves as a whole, and leaves its old machines behind.
            moves = now > seen.get(name, 0) and workload[name].together is not None
            if now < seen.get(name, 0) or moves:
                self.monitor.excuse(cluster.id, self.loop.time())
            seen[name] = now

        workload.on_change.append(changed)

    def impostor(self, cluster: str) -> Callable[[], None]:
        """A client calls with a cluster's id and says nothing but Hello."""

        async def pretend() -> None:
            line = await self.board.dial(cluster, self.plan.shard_of(cluster))
            await line.send(pb.OperatorMessage(hello=pb.Hello(cluster_id=cluster)))
            while await line.receive() is not None:
                pass

        process = Process(f"impostor-{cluster}")
        task = process.spawn(pretend(), "pretend")
        # It will be thrown out, and does not mind.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return process.crash

    # -- peace -----------------------------------------------------------------------------------

    def peace(self) -> None:
        """Faults end; everybody who is down comes back."""
        self.trace.note("world", "peace")
        self.monitor.calm_since = self.loop.time()
        self.injector.peace()
        for host in self.hosts.values():
            host.peace()
        if self.coordinator is not None:
            self.coordinator.peace()
        for provider in self.providers.values():
            if not provider.up:
                provider.start()
