"""Seeded workloads: as many rows as asked for, of the kinds real clusters have.

What an object asks for is drawn from a `Mix`. Each object becomes a row of its own in the roll-up:
where the draw repeats a profile and a size, its priority moves up until it does not, as priorities
of real clusters have many values too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Final

from bigfleet.model import (
    LABEL_INSTANCE_TYPE,
    LABEL_ZONE,
    PenaltyBucket,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
)
from bigfleet_lab.simcluster.errors import WorkloadError
from bigfleet_lab.simcluster.rollup import RowKey, row_key
from bigfleet_lab.simcluster.workload import Workload, WorkObject

_GI: Final = 1024**3 * 1000
"""A gibibyte in milli-units, as all amounts are."""
_ANY_TYPE: Final = Requirement.of(LABEL_INSTANCE_TYPE, RequirementOperator.EXISTS)
"""What a pod without wishes of its own asks for."""
_KINDS: Final = ("web", "api", "worker", "cache", "store", "batch", "train", "index")


@dataclass(frozen=True, slots=True)
class Mix:
    """What objects are like. Shares are of the objects."""

    cpus: tuple[int, ...] = (100, 250, 500, 1_000, 2_000)
    """Milli-CPUs a pod may ask for."""
    gibibytes_per_cpu: tuple[int, ...] = (2, 4)
    replicas: tuple[int, int] = (1, 12)
    priorities: tuple[int, ...] = (0, 100, 1_000, 100_000)
    zones: tuple[str, ...] = ()
    """Zones that zonal objects name; without any, no object names one."""
    zonal: float = 0.2
    gangs: float = 0.05
    gang_key: str = LABEL_ZONE
    gang_size: tuple[int, int] = (2, 6)
    spread: float = 0.1
    penalties: float = 0.3
    """Share of objects that say what an interruption costs them."""
    do_not_disrupt: float = 0.0
    count_pods: bool = False
    """Whether a pod also asks for one `pods`; then machines must say how many they hold."""

    def __post_init__(self) -> None:
        shares = (self.zonal, self.gangs, self.spread, self.penalties, self.do_not_disrupt)
        if any(not 0 <= share <= 1 for share in shares):
            raise WorkloadError(f"shares {shares} of a mix: use numbers from 0 to 1")
        if not (self.cpus and self.gibibytes_per_cpu and self.priorities):
            raise WorkloadError("a mix needs cpus, gibibytes_per_cpu and priorities to draw from")


def make_workload(rng: Random, rows: int, mix: Mix | None = None, namespace: str = "") -> Workload:
    """A workload whose roll-up has this many rows; the same for the same source of chance."""
    if rows < 0:
        raise WorkloadError(f"{rows} rows: use zero or more")
    drawing, workload, taken = mix or Mix(), Workload(), set[RowKey]()
    for number in range(rows):
        drawn = _distinct(_draw(rng, drawing, number, namespace), taken)
        taken.add(row_key(drawn))
        low, high = drawing.gang_size if drawn.group else drawing.replicas
        workload.add(drawn, rng.randint(low, high))
    return workload


def _draw(rng: Random, mix: Mix, number: int, namespace: str) -> WorkObject:
    name = f"{namespace or 'default'}/{rng.choice(_KINDS)}-{number:04d}"
    gang = rng.random() < mix.gangs
    requirements = [_ANY_TYPE]
    if gang:
        requirements.append(Requirement.of(mix.gang_key, RequirementOperator.SAME))
    elif mix.zones and rng.random() < mix.zonal:
        zones = rng.sample(mix.zones, rng.randint(1, len(mix.zones)))
        requirements.append(Requirement.of(LABEL_ZONE, RequirementOperator.IN, zones))
    spread = [Spread(LABEL_ZONE, 1)] if not gang and rng.random() < mix.spread else []
    penalty = (
        PenaltyBucket(rng.randint(PenaltyBucket.ZERO, PenaltyBucket.DOLLARS_256))
        if rng.random() < mix.penalties
        else PenaltyBucket.UNSPECIFIED
    )
    cpu = rng.choice(mix.cpus)
    request = {"cpu": cpu, "memory": cpu * rng.choice(mix.gibibytes_per_cpu) * _GI // 1_000}
    if mix.count_pods:
        request["pods"] = 1_000
    return WorkObject(
        name,
        _profile(tuple(requirements), tuple(spread), rng.choice(mix.priorities), penalty),
        request,
        f"{mix.gang_key}|{name}" if gang else "",
        rng.random() < mix.do_not_disrupt,
    )


def _distinct(drawn: WorkObject, taken: set[RowKey]) -> WorkObject:
    while row_key(drawn) in taken:
        was = drawn.profile
        profile = _profile(was.requirements, was.spread, was.priority + 1, was.interruption)
        drawn = WorkObject(drawn.name, profile, drawn.request, drawn.group, drawn.do_not_disrupt)
    return drawn


@lru_cache(65_536)
def _profile(
    requirements: tuple[Requirement, ...],
    spread: tuple[Spread, ...],
    priority: int,
    interruption: PenaltyBucket,
) -> Profile:
    """One value for equal profiles of all clusters: fingerprints are what making them costs."""
    return Profile.of(requirements, spread, priority, interruption)
