"""Everything of one seed, put together: providers, clusters, a network, and a shard that restarts.

How a shard is built is passed in, so that tests can build one with a bug. The world restarts it
when it dies, and gives every life a process, the disk and the clock of the host it runs on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random
from typing import Final, Protocol

from bigfleet.simcluster.cluster import SimCluster
from bigfleet.simcluster.operator import SimOperator
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from sim.drawing import Plan
from sim.handle import ShardHandle
from sim.injecting import Injector
from sim.loop import VirtualLoop
from sim.monitor import Monitor
from sim.network import NOWHERE, Network
from sim.ports import NANO, SimClock, SimDisk
from sim.process import Process
from sim.provider import ModelProvider, Request
from sim.slots import Kind
from sim.streams import Dialling, ShardEnd, Switchboard
from sim.trace import Trace

SHARD: Final = "s1"


class TrueClock(SimClock):
    """The clock nobody sets."""

    def in_seconds(self, seconds: float) -> int:
        """A time to come, in Unix nanoseconds."""
        return self.now() + int(seconds * NANO)


class ShardLife(ShardHandle, Protocol):
    """A shard that can be run."""

    async def run(self) -> None:
        """Until cancelled."""
        ...

    async def serve(self, stream: ShardEnd) -> None:
        """One session to its end."""
        ...


Build = Callable[["World", Process, "Mounted"], ShardLife]


class Mounted:
    """A disk as one process sees it. It can be taken away from under a process."""

    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk
        self.on_write: Callable[[], None] | None = None

    def read(self, name: str) -> bytes | None:
        """The content of a file."""
        return self.disk.read(name)

    def replace(self, name: str, content: bytes) -> None:
        """Other content, whole."""
        self.disk.replace(name, content)
        self._written()

    def append(self, name: str, content: bytes) -> None:
        """More at the end."""
        self.disk.append(name, content)
        self._written()

    @property
    def writes(self) -> int:
        """How many there were."""
        return self.disk.writes

    def answered_later(self) -> AbstractContextManager[None]:
        """Writes made inside are under way until they are settled."""
        return self.disk.answered_later()

    def settle(self, first: int) -> None:
        """Writes after this number have been answered."""
        self.disk.settle(first)

    def _written(self) -> None:
        if self.on_write is not None:
            self.on_write()


class World:
    """One seed, running. Make it inside its loop."""

    def __init__(self, plan: Plan, loop: VirtualLoop, trace: Trace, build: Build) -> None:
        self.plan, self.loop, self.trace = plan, loop, trace
        self.shard_name = SHARD
        self.true_clock, self.shard_clock = TrueClock(), SimClock()
        self.monitor = Monitor(trace)
        if not plan.faults:
            self.monitor.calm_since = 0.0
        self.network = Network(self.rng("network"), trace)
        self.board = Switchboard(self.network)
        self.disk = SimDisk(self.rng("disk"))
        self.providers = {
            drawn.name: ModelProvider(drawn.name, drawn.slots(), self.rng(drawn.name), trace)
            for drawn in plan.providers
        }
        for provider in self.providers.values():
            provider.watch = self.monitor
        self.operators: dict[str, SimOperator] = {}
        self.injector = Injector(self)
        self.lives: list[ShardLife] = []
        self.phantoms_until = 0.0
        """Until then a node that died may still count as a machine that serves."""
        self._build = build
        self._mutations_until_crash = 0
        self._restarts = self.rng("restarts")

    def rng(self, name: str) -> Random:
        """A source of chance of its own for each part."""
        return Random(f"{name}-{self.plan.seed}")

    @property
    def shard(self) -> ShardLife:
        """The newest life of the shard."""
        return self.lives[-1]

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Something that happens whatever lives or dies."""
        self.loop.call_later(seconds, action, context=NOWHERE)

    # -- shards ----------------------------------------------------------------------------------

    def start_shard(self) -> None:
        """A new life of the shard, on the same disk."""
        process = Process(f"{SHARD}.{len(self.lives) + 1}")
        mounted = Mounted(self.disk)
        self.trace.note(process.name, "starts")
        process.at_death(lambda: self._died(process, mounted))
        life = self._build(self, process, mounted)
        self.lives.append(life)
        self._mounted = mounted
        self._running = process.spawn(self._live(life), "run")
        self.board.listen(SHARD, process, life.serve)

    async def _live(self, life: ShardLife) -> None:
        try:
            await life.run()
        except OSError as error:
            if not self.disk.full:
                self.trace.broken("run", f"{life.process.name} ended: {error!r}")
            self.trace.note(life.process.name, f"cannot run: {error}")
            self.later(0.0, life.process.crash)

    def _died(self, process: Process, mounted: Mounted) -> None:
        self.trace.note(process.name, "dies")
        mounted.disk.crash()
        if self.lives[-1].process is process:
            self.later(self._restarts.choice((0.1, 1.0, 10.0)), self._restart)

    def stop_shard(self) -> None:
        """Ask the shard to stop, for good."""
        self._running.cancel()
        self.board.hang_up(self.shard.process)

    def _restart(self) -> None:
        if not self.shard.process.alive:
            self.start_shard()

    def crash_at_mutation(self, count: int) -> None:
        """Die when the count-th mutation from now leaves."""
        self._mutations_until_crash = count

    def sends(self, process: Process, kind: Kind, request: Request) -> None:
        """A mutation leaves a shard."""
        self.monitor.sends(process, kind, request)
        if self._mutations_until_crash and process is self.shard.process:
            self._mutations_until_crash -= 1
            if not self._mutations_until_crash:
                process.crash_after(self._restarts.randint(1, 40))

    def answered(self, process: Process, machine_id: str) -> None:
        """Its sender no longer waits."""
        self.monitor.answered(process, machine_id)

    def crash_at_write(self, count: int) -> None:
        """Die around the count-th write from now."""
        left = [count]
        mounted, process = self._mounted, self.shard.process

        def written() -> None:
            left[0] -= 1
            if left[0] == 0:
                process.crash_after(self._restarts.randint(1, 4))

        mounted.on_write = written

    def replace_shard(self) -> Callable[[], None]:
        """The shard stands still and another life of it begins; what wakes the first one up."""
        old, mounted = self.shard.process, self._mounted
        old.pause()
        mounted.disk = self.disk.copy()
        self.start_shard()

        def wake() -> None:
            self.loop.resume(old)
            self.later(self._restarts.uniform(1.0, 40.0), old.crash)

        return wake

    # -- clusters --------------------------------------------------------------------------------

    def start_clusters(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """All clusters, each calling when its time has come."""
        dial = Dialling(self.board, lambda cluster: SHARD)
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
            if now < seen.get(name, 0):
                self.monitor.excuse(cluster.id, self.loop.time())
            seen[name] = now

        workload.on_change.append(changed)

    def impostor(self, cluster: str) -> Callable[[], None]:
        """Somebody calls with a cluster's id and says nothing but Hello."""

        async def pretend() -> None:
            line = await self.board.dial(cluster, SHARD)
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
        self._mutations_until_crash = 0
        self._mounted.on_write = None
        for provider in self.providers.values():
            if not provider.up:
                provider.start()
