"""The production shard between model providers and simulated clusters, run by a story.

A story is a coroutine that gets a `Whole`. Time is virtual: sleeping an hour costs what happens in
it. Invariants of the simulation hold all the while, and so does that nothing fails unseen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from bigfleet.model import (
    LABEL_INSTANCE_TYPE,
    CapacityType,
    Profile,
    Requirement,
    RequirementOperator,
)
from bigfleet.shard.act.audit_log import AuditLog
from bigfleet.shard.decide.inputs import configured_per_cluster
from bigfleet.shard.server import shard as product
from bigfleet.shard.server.settings import ShardConfig
from bigfleet.shard.server.shard import Shard
from bigfleet_lab.simcluster.behaviour import Behaviour
from bigfleet_lab.simcluster.generator import Mix
from bigfleet_lab.simcluster.operator import SimOperator
from bigfleet_lab.simcluster.workload import Workload, WorkObject
from sim.drawing import SHARD, ClusterPlan, Plan, ProviderPlan
from sim.loop import VirtualLoop, virtual_loop
from sim.process import Process
from sim.provider import ModelProvider
from sim.shards import Life
from sim.slots import Offer, S
from sim.trace import Trace
from sim.world import Mounted, World

T = TypeVar("T")
GI = 1024**3 * 1000
CPUS = 4
QUIET = Behaviour(rollup_seconds=10.0)


def offers(count: int, kind: CapacityType, price: float = 0.2) -> tuple[Offer, ...]:
    """So many equal machines of four CPUs; fixed kinds are Idle from the start."""
    zones = ("z-a", "z-b", "z-c")
    return tuple(
        Offer("m.large", zones[n % 3], f"{zones[n % 3]}-r1", kind, price, 0.0, CPUS, CPUS * 4)
        for n in range(count)
    )


def provider(name: str = "p1", idle: int = 0, speculative: int = 0) -> ProviderPlan:
    """A provider with hosts of its own and slots to buy."""
    owned = offers(idle, CapacityType.BARE_METAL, 0.0)
    return ProviderPlan(name, (*owned, *offers(speculative, CapacityType.ON_DEMAND)))


def work(name: str, cpus: int = 4, priority: int = 100) -> WorkObject:
    """Pods of so many CPUs."""
    anywhere = [Requirement.of(LABEL_INSTANCE_TYPE, RequirementOperator.EXISTS)]
    request = {"cpu": cpus * 1000, "memory": cpus * GI}
    return WorkObject(name, Profile.of(anywhere, priority=priority), request)


@dataclass(frozen=True)
class Wants(ClusterPlan):
    """A cluster that asks for what a test says."""

    replicas: tuple[tuple[WorkObject, int], ...] = ()

    def workload(self) -> Workload:
        """Its demand at the beginning."""
        made = Workload()
        for what, count in self.replicas:
            made.add(what, count)
        return made


def cluster(
    name: str = "c1", replicas: int = 2, *, rows: int = 1, behaviour: Behaviour = QUIET
) -> Wants:
    """A cluster of so many pods, each of which fills a machine, in every one of its rows."""
    made = tuple((work(f"{name}/w{row}", priority=100 + row), replicas) for row in range(rows))
    return Wants(name, 1, 0, Mix(), 1.0, behaviour, 0.0, (), made)


Tune = Callable[[ShardConfig], ShardConfig]


@dataclass
class Setting:
    """What there is, and how the shard is set."""

    providers: Sequence[ProviderPlan] = ()
    clusters: Sequence[ClusterPlan] = ()
    tune: Tune = lambda tuning: tuning
    audit: Callable[[bytes], None] | None = None
    world: type[World] = World
    seed: int = 1
    ports: Callable[[product.ShardEnvironment], product.ShardEnvironment] = field(
        default=lambda ports: ports
    )
    homes: Mapping[str, str] = field(default_factory=dict)
    """Cluster -> its shard, where there are several: then there is a coordinator, too."""

    def plan(self) -> Plan:
        """As the simulation wants it."""
        shards = tuple(sorted(set(self.homes.values()))) or (SHARD,)
        return Plan(
            self.seed, "none", 0.0, tuple(self.providers), tuple(self.clusters), (), shards,
            self.homes,
        )  # fmt: skip


class Whole:
    """What a story sees and moves."""

    def __init__(self, setting: Setting, loop: VirtualLoop, group: asyncio.TaskGroup) -> None:
        self._setting = setting
        self._group = group
        self.loop = loop
        self.world = setting.world(setting.plan(), loop, Trace(loop), self._build)
        self._clusters: list[asyncio.Task[None]] = []

    def _build(self, world: World, process: Process, disk: Mounted) -> _Life:
        return _Life(world, process, disk, self._setting)

    @property
    def shard(self) -> Shard:
        """The shard that lives now."""
        life = self.world.shard
        assert isinstance(life, _Life)
        return life.shard

    @property
    def provider(self) -> ModelProvider:
        """The first provider."""
        return next(iter(self.world.providers.values()))

    @property
    def is_started(self) -> bool:
        """Whether the shards that live now have read their disks."""
        lives = [host.life for host in self.world.hosts.values()]
        return all(isinstance(life, _Life) and life.is_started for life in lives)

    def shard_of(self, name: str) -> Shard:
        """One of several shards, as it lives now."""
        life = self.world.hosts[name].life
        assert isinstance(life, _Life)
        return life.shard

    def operator(self, name: str = "c1") -> SimOperator:
        """A cluster's operator."""
        return self.world.operators[name]

    def scale(self, replicas: int, name: str = "c1") -> None:
        """A cluster asks for so many pods, in each of its rows."""
        workload = self.operator(name).cluster.workload
        for what in workload.names:
            workload.scale(what, replicas)

    async def begin(self) -> None:
        """Shards and clusters begin; where there are several shards, a coordinator comes first."""
        await self.world.start_fleet()
        self._clusters = self.world.start_clusters(self._group)

    async def restart(self) -> None:
        """kill -9, and a new life once the world has noticed."""
        self.world.shard.process.crash()
        lives = len(self.world.lives)
        await self.until(lambda: len(self.world.lives) > lives and self.is_started, 60.0)

    async def until(self, holds: Callable[[], bool], seconds: float, what: str = "it") -> None:
        """Let time pass until something holds, which must not take longer."""
        latest = self.loop.time() + seconds
        while not holds():
            assert self.loop.time() < latest, f"{what} did not come about within {seconds:g} s"
            await asyncio.sleep(0.1)

    def bound(self, name: str = "c1") -> int:
        """Machines that are Configured for a cluster, as provider and shard say."""
        book = self.world.host_of(name).life.book
        return sum(
            known.cluster == name and known.state is S.CONFIGURED and not book.busy(slot.id)
            for provider in self.world.providers.values()
            for slot in provider.slots.values()
            if slot.cluster == name and slot.state is S.CONFIGURED
            if (known := book.get(slot.id)) is not None
        )

    def metric(self, name: str, **labels: str) -> float:
        """A value as it would be scraped; 0 for a series that is not there."""
        registry = self.shard.metrics.registry
        return registry.get_sample_value(f"bigfleet_shard_{name}", labels) or 0.0

    async def stop(self) -> None:
        """An orderly end."""
        self.world.stop_shard()
        await asyncio.sleep(20.0)
        left = self.world.shard.process.unfinished()
        assert not left, f"the shard leaves tasks behind: {left}"

    def end(self) -> None:
        """Nothing of the clusters goes on."""
        for task in self._clusters:
            task.cancel()


class _Life(Life):
    """A life that a test may look into."""

    def __init__(self, world: World, process: Process, disk: Mounted, setting: Setting) -> None:
        super().__init__(world, process, disk)
        self._setting = setting

    @property
    def is_started(self) -> bool:
        """Whether it has read its disk."""
        return self._shard is not None

    @property
    def shard(self) -> Shard:
        """The product's own."""
        assert self._shard is not None, "the shard is still starting"
        return self._shard

    def configured(self, cluster: str) -> int:
        """How many machines it counts as Configured for a cluster, read from its columns."""
        return configured_per_cluster(self.book).get(cluster, 0)

    def _tuning(self) -> ShardConfig:
        return self._setting.tune(super()._tuning())

    def _ports(self) -> product.ShardEnvironment:
        ports = super()._ports()
        if self._setting.audit is not None:
            ports = replace(ports, audit=AuditLog(self._setting.audit, ports.offload))
        return self._setting.ports(ports)


def live(setting: Setting, story: Callable[[Whole], Coroutine[Any, Any, T]]) -> T:
    """Run a story from the start of the shard to its end."""
    loop = virtual_loop(setting.seed)

    async def main() -> T:
        async with asyncio.TaskGroup() as group:
            whole = Whole(setting, loop, group)
            await whole.begin()
            try:
                await whole.until(lambda: whole.is_started, 30.0, "the start of the shard")
                return await story(whole)
            finally:
                whole.end()

    return loop.run(main())
