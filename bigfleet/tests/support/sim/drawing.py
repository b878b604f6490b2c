"""What a seed stands for: a fleet, a workload that moves, and how much goes wrong.

Everything here is a value drawn from one source of chance, so a plan can be printed, compared and
made smaller. Nothing runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from bigfleet.model import LABEL_ZONE, CapacityType
from bigfleet_lab.simcluster.behaviour import Behaviour, Span
from bigfleet_lab.simcluster.demand_changes import Change, Step
from bigfleet_lab.simcluster.generator import Mix, make_workload
from bigfleet_lab.simcluster.workload import Workload
from sim.faults import Fault, draw_faults
from sim.slots import FIXED, Offer, S, Slot

MINUTES: Final = 20.0
SHARD: Final = "s1"
EVERY: Final = 4
"""Every so many seeds the fleet has several shards and a coordinator."""
ZONES: Final = ("z-a", "z-b", "z-c")
_TYPES: Final = (("m.large", 4), ("m.xlarge", 8), ("m.2xlarge", 16))
_DOLLARS_PER_CPU: Final = 0.05
_GI: Final = 1024**3 * 1000


@dataclass(frozen=True, slots=True)
class ProviderPlan:
    """A provider and the machines it starts with."""

    name: str
    offers: tuple[Offer, ...]

    def slots(self) -> list[Slot]:
        """Its slots: fixed capacity is Idle from the start, everything else has to be created."""
        return [
            Slot(
                f"{self.name}/{offer.capacity_type.camel}/{offer.instance_type}/{number:03d}",
                offer,
                S.IDLE if offer.capacity_type in FIXED else S.SPECULATIVE,
                host=f"host-{self.name}-{number}" if offer.capacity_type in FIXED else "",
                price=offer.price,
            )
            for number, offer in enumerate(self.offers)
        ]


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """A cluster: its demand is drawn again from its seed whenever it is needed."""

    name: str
    seed: int
    rows: int
    mix: Mix
    scale: float
    behaviour: Behaviour
    joins_after: float
    steps: tuple[Step, ...] = ()

    def workload(self) -> Workload:
        """Its demand at the beginning."""
        workload = make_workload(Random(self.seed), self.rows, self.mix, self.name)
        for name in workload.names:
            if not workload[name].group:
                workload.scale(name, max(1, round(workload.replicas(name) * self.scale)))
        return workload


@dataclass(frozen=True, slots=True)
class Plan:
    """One seed, spelled out."""

    seed: int
    severity: str
    seconds: float
    providers: tuple[ProviderPlan, ...]
    clusters: tuple[ClusterPlan, ...]
    faults: tuple[Fault, ...]
    shards: tuple[str, ...] = (SHARD,)
    homes: Mapping[str, str] = field(default_factory=dict)
    """Cluster -> its shard; all others call the first one."""
    quota_share: float = 0.0
    """Of a provider's slots, what all shards together may hold; 0 for no quotas."""
    cycle_gap: float = 0.2
    """Least seconds between two cycles of a shard."""

    def shard_of(self, cluster: str) -> str:
        """The shard that a cluster calls."""
        return self.homes.get(cluster, self.shards[0])

    @property
    def machines(self) -> int:
        """How many there are."""
        return sum(len(provider.offers) for provider in self.providers)

    def without_faults(self) -> Plan:
        """The same fleet in peace."""
        return replace(self, faults=(), severity="none")

    def describe(self) -> str:
        """In a line."""
        shards = f"{len(self.shards)} shards, " if len(self.shards) > 1 else ""
        return (
            f"seed {self.seed}: {shards}{len(self.clusters)} clusters, {self.machines} machines of "
            f"{len(self.providers)} providers, {len(self.faults)} faults ({self.severity})"
        )


def draw(seed: int, *, seconds: float = MINUTES * 60) -> Plan:
    """The plan of a seed."""
    rng = Random(f"plan-{seed}")
    providers = _providers(rng)
    severity = rng.choice(("none", "light", "medium", "medium", "storm"))
    clusters = _clusters(rng, providers, seconds)
    shards: tuple[str, ...] = (SHARD,)
    homes, share = dict[str, str](), 0.0
    if seed % EVERY == 0:
        shards = tuple(f"s{number}" for number in range(1, rng.randint(2, 3) + 1))
        # Some shards have more demand than machines, others fewer.
        weights = [rng.uniform(0.2, 1.0) ** 2 for _ in shards]
        homes = {one.name: rng.choices(shards, weights)[0] for one in clusters}
        share = rng.choice((0.0, 0.0, 0.5, 0.9))
    faults = draw_faults(
        rng,
        severity,
        seconds,
        [provider.name for provider in providers],
        [cluster.name for cluster in clusters],
        shards,
    )
    gap = Random(f"gap-{seed}").choice((0.2, 1.0, 2.0))
    return Plan(seed, severity, seconds, providers, clusters, faults, shards, homes, share, gap)


def _providers(rng: Random) -> tuple[ProviderPlan, ...]:
    machines = int(20 * 20 ** rng.random())
    count = rng.randint(1, 3)
    shares = [rng.uniform(0.5, 1.5) for _ in range(count)]
    return tuple(
        ProviderPlan(
            f"p{number}", _offers(rng, max(5, round(machines * share / sum(shares))), number)
        )
        for number, share in enumerate(shares, 1)
    )


def _offers(rng: Random, count: int, provider: int) -> tuple[Offer, ...]:
    racks = rng.randint(1, 3)
    kinds = rng.choice(
        (
            (CapacityType.ON_DEMAND,),
            (CapacityType.ON_DEMAND, CapacityType.SPOT),
            (CapacityType.BARE_METAL, CapacityType.ON_DEMAND, CapacityType.SPOT),
            (CapacityType.RESERVED, CapacityType.ON_DEMAND),
        )
    )
    prices = {kind: rng.uniform(0.8, 1.2) for kind in kinds}
    found = []
    for _ in range(count):
        kind, (name, cpu), zone = rng.choice(kinds), rng.choice(_TYPES), rng.choice(ZONES)
        price = _DOLLARS_PER_CPU * cpu * prices[kind]
        found.append(
            Offer(
                instance_type=name,
                zone=zone,
                rack=f"{zone}-p{provider}-r{rng.randint(1, racks)}",
                capacity_type=kind,
                price=0.0 if kind is CapacityType.BARE_METAL else round(price, 4),
                interruption=0.02 if kind is CapacityType.SPOT else 0.0,
                cpu=cpu,
                memory_gi=cpu * 4,
            )
        )
    return tuple(found)


def _clusters(
    rng: Random, providers: tuple[ProviderPlan, ...], seconds: float
) -> tuple[ClusterPlan, ...]:
    count = rng.randint(2, 12)
    cpus = sum(offer.cpu for provider in providers for offer in provider.offers)
    each = cpus * rng.uniform(0.3, 1.3) / count
    return tuple(_cluster(rng, number, each, seconds) for number in range(count))


def _cluster(rng: Random, number: int, cpus: float, seconds: float) -> ClusterPlan:
    mix = Mix(
        cpus=(250, 500, 1_000, 2_000, 4_000),
        replicas=(1, 10),
        priorities=(0, 100, 1_000, 100_000, 1_000_000),
        zones=ZONES,
        gangs=rng.choice((0.0, 0.1, 0.3)),
        gang_key=rng.choice((LABEL_ZONE, "topology.bigfleet/rack")),
        spread=rng.choice((0.0, 0.1)),
        do_not_disrupt=rng.choice((0.0, 0.0, 0.05)),
        count_pods=rng.random() < 0.3,
    )
    plan = ClusterPlan(
        name=f"c{number:02d}",
        seed=rng.getrandbits(48),
        rows=rng.randint(2, 10),
        mix=mix,
        scale=1.0,
        behaviour=Behaviour(
            join_seconds=Span(0.0, rng.choice((0.0, 5.0))),
            evict_seconds=Span(0.5, rng.choice((3.0, 30.0))),
            stuck_drain_rate=rng.choice((0.0, 0.0, 0.1)),
            bootstrap_seconds=Span(0.01, rng.choice((0.1, 2.0))),
            bootstrap_ttl_seconds=rng.choice((900, 900, 30, 0)),
            software_version="" if rng.random() < 0.1 else "bigfleet-simcluster",
        ),
        joins_after=rng.choice((0.0, rng.uniform(0.0, 60.0))),
        steps=_steps(rng, seconds),
    )
    drawn = _cpus(plan.workload())
    return replace(plan, scale=max(0.1, cpus / drawn))


def _steps(rng: Random, seconds: float) -> tuple[Step, ...]:
    """How demand moves; a quarter of the clusters never asks for anything else."""
    if rng.random() < 0.25:
        return ()
    drawn = [
        Step(
            round(rng.uniform(30.0, seconds * 0.9), 3),
            rng.choice((Change.CHURN, Change.TURNOVER, Change.STEP, Change.GROW, Change.SHED)),
            rng.choice((0.2, 0.5, 0.8)),
        )
        for _ in range(rng.randint(1, 8))
    ]
    return tuple(sorted(drawn, key=lambda step: step.at_seconds))


def _cpus(workload: Workload) -> float:
    return sum(what.request["cpu"] / 1000 * workload.replicas(what.name) for what in workload)
