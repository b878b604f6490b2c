"""Small random fleets that bring the rules of the engine into contact with each other.

Everything is drawn from one ``random.Random``, so a failing case is a seed. Few instance types,
few zones and racks, overlapping requirements and tight supply: that is where rules meet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from bigfleet.decision.policy import SECOND, Policy
from bigfleet.model import (
    LABEL_ARCH,
    LABEL_INSTANCE_TYPE,
    CapacityType,
    Departure,
    HostRef,
    Machine,
    MachineState,
    Need,
    PenaltyBucket,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
    SpreadMode,
    Stamp,
    Taint,
    Toleration,
    aggregate_rows,
    canonical_taints,
)
from bigfleet.model.facts import ClusterFacts
from bigfleet.model.lifecycle import ALLOCATABLE

RACK = "topology.bigfleet/rack"
ZONE = "topology.kubernetes.io/zone"
POOL = "pool"
S = MachineState
NOW = 10_000 * SECOND
TAINTS = [
    Taint.of("gpu", "present", "NoSchedule"),
    Taint.of("gpu", "present", "PreferNoSchedule"),
    Taint.of("team", "a", "NoExecute"),
    Taint.of("team", "b", "PreferNoSchedule"),
]
TOLERATIONS = [
    Toleration.of("gpu", "Exists"),
    Toleration.of("gpu", "Equal", "present", "NoSchedule"),
    Toleration.of("team", "Equal", "a"),
    Toleration.of(operator="Exists", effect="PreferNoSchedule"),
    Toleration.of(operator="Exists"),
]

_TYPES = {
    "small": {"cpu": 4_000, "memory": 16_000},
    "medium": {"cpu": 8_000, "memory": 32_000},
    "fat": {"cpu": 8_000, "memory": 64_000},
    "large": {"cpu": 16_000, "memory": 64_000},
    "gpu": {"cpu": 16_000, "memory": 128_000, "gpu": 4_000},
}
_PRICES = {"small": 0.1, "medium": 0.2, "fat": 0.25, "large": 0.4, "gpu": 2.0}
_PROBABILITY = {CapacityType.SPOT: (0.05, 0.3)}


@dataclass
class Shape:
    """What a generated case may contain."""

    machines: int = 16
    needs: int = 6
    clusters: int = 3
    gangs: bool = True
    spread: bool = True
    limits: bool = True
    bound: bool = True
    odd_states: bool = True


@dataclass
class Case:
    """One generated fleet with its demand and settings."""

    machines: list[Machine]
    needs: list[Need]
    facts: dict[str, ClusterFacts]
    policy: Policy
    cooling: set[tuple[str, str, str, CapacityType]] = field(default_factory=set)
    drain_seconds: dict[tuple[str, str, str, CapacityType], float] = field(default_factory=dict)


def case(seed: int, shape: Shape | None = None) -> Case:
    """The case of a seed."""
    rng, shape = Random(seed), shape or Shape()
    clusters = [f"c-{i}" for i in range(rng.randint(1, shape.clusters))]
    needs = aggregate_rows(
        need(rng, rng.choice(clusters), shape, i) for i in range(rng.randint(1, shape.needs))
    )
    machines = [
        machine(rng, i, clusters, needs, shape) for i in range(rng.randint(2, shape.machines))
    ]
    facts = {c: _facts(rng, shape) for c in clusters}
    offerings = sorted({(m.provider, m.instance_type, m.zone, m.capacity_type) for m in machines})
    cooling = {o for o in offerings if shape.limits and rng.random() < 0.08}
    drains = {o: rng.choice([0.0, 0.5, 45.0, 300.0]) for o in offerings if rng.random() < 0.2}
    return Case(machines, needs, facts, policy(rng, clusters, shape), cooling, drains)


def need(rng: Random, cluster: str, shape: Shape, index: int) -> Need:
    requirements, group = [], ""
    if rng.random() < 0.5:
        requirements.append(
            Requirement.of(POOL, RequirementOperator.IN, rng.sample(["a", "b"], rng.randint(1, 2)))
        )
    if rng.random() < 0.2:
        requirements.append(Requirement.of(ZONE, RequirementOperator.NOT_IN, ["z-b"]))
    if rng.random() < 0.1:
        requirements.append(
            Requirement.of(LABEL_ARCH, RequirementOperator.IN, [rng.choice(["amd64", "arm64"])])
        )
    if rng.random() < 0.1:
        kinds = rng.sample(sorted(_TYPES), 3)
        requirements.append(Requirement.of(LABEL_INSTANCE_TYPE, RequirementOperator.IN, kinds))
    if rng.random() < 0.1:
        requirements.append(Requirement.of("gen", RequirementOperator.GT, ["2"]))
    if rng.random() < 0.08:
        requirements.append(Requirement.of(RACK, RequirementOperator.IN, ["r-0", "r-1"]))
    unit = {"cpu": rng.choice([1, 2, 3, 4, 6]) * 1000, "memory": rng.choice([2, 4, 8, 20]) * 1000}
    if rng.random() < 0.12:
        unit["gpu"] = rng.choice([1, 2, 4]) * 1000
    if shape.gangs and rng.random() < 0.4:
        requirements.append(
            Requirement.of(rng.choice([RACK, RACK, ZONE]), RequirementOperator.SAME, [])
        )
        group = f"g-{rng.randint(0, 9)}"
    spread = []
    if shape.spread and rng.random() < 0.2:
        spread.append(
            Spread(rng.choice([ZONE, RACK]), rng.randint(1, 2), SpreadMode.DO_NOT_SCHEDULE)
        )
    count = rng.choice([1, 1, 2, 3, 4, 6, 9])
    aggregate = {d: v * count for d, v in unit.items()}
    if rng.random() < 0.3:
        aggregate["cpu"] += rng.choice([500, 1500])
    if rng.random() < 0.05:
        aggregate["licence"] = 1000
    profile = Profile.of(
        requirements=requirements,
        spread=spread,
        tolerations=_tolerations(rng),
        priority=rng.choice([0, 100, 100, 1000, 1_000_000]),
        interruption=PenaltyBucket(rng.choice([0, 1, 1, 2, 4, 8, 27])),
        reclamation=PenaltyBucket(rng.choice([0, 1, 1, 3, 27])),
    )
    return Need(
        cluster=cluster,
        profile=profile,
        aggregate=aggregate,
        min_unit=unit if rng.random() < 0.95 else {},
        group=group,
        size_class=rng.choice(["", "", "s"]),
        arrival_ns=rng.randint(1, 5),
        shrunk_at=rng.choice([0, 50, 10**9]),
    )


def machine(
    rng: Random, index: int, clusters: list[str], needs: list[Need], shape: Shape
) -> Machine:
    kind = rng.choice([*_TYPES, "small", "medium", "large"])
    capacity_type = rng.choice(list(CapacityType)[1:])
    owned = capacity_type in (CapacityType.BARE_METAL, CapacityType.RESERVED)
    rack = rng.randint(0, 3)
    labels = {RACK: f"r-{rack}", POOL: rng.choice(["a", "b"]), "gen": str(rng.randint(1, 4))}
    if rng.random() < 0.05:
        del labels[RACK]
    if rng.random() < 0.5:
        labels[LABEL_ARCH] = rng.choice(["amd64", "arm64"])
    probability = rng.choice(_PROBABILITY[capacity_type]) if capacity_type in _PROBABILITY else 0.0
    price = 0.0 if owned else _PRICES[kind] * (0.4 if probability else 1.0)
    state = _state(rng, shape)
    bound = state in (S.CONFIGURING, S.CONFIGURED, S.DRAINING)
    stamp = _stamp(rng, needs) if state not in (S.SPECULATIVE, S.DELETING) else None
    if state is S.IDLE and rng.random() < 0.5:
        stamp = None
    cluster = ""
    if bound:
        cluster = (
            stamp.cluster if stamp is not None and rng.random() < 0.9 else rng.choice(clusters)
        )
    leaving = None
    if state is S.DRAINING or (shape.odd_states and state is S.CONFIGURED and rng.random() < 0.12):
        whom = _stamp(rng, needs) if rng.random() < 0.5 else None
        leaving = Departure(whom, NOW - 5 * SECOND, final=whom is None and index % 3 == 0)
    odd = shape.odd_states
    is_reserved, is_backing_off = index % 3 == 1, index % 3 == 2 and state in ALLOCATABLE
    machine = Machine(
        id=f"m-{index:03d}",
        state=state,
        host=None if state in (S.SPECULATIVE, S.CREATING) else HostRef("p", f"h-{index}"),
        provider=rng.choice(["p-1", "p-1", "p-2"]),
        region="eu",
        cluster=cluster,
        instance_type=kind,
        zone="z-a" if rack % 2 == 0 else "z-b",
        capacity_type=capacity_type,
        labels=labels,
        resources=_TYPES[kind],
        allocatable={**_TYPES[kind], "cpu": _TYPES[kind]["cpu"] - 200}
        if rng.random() < 0.2
        else None,
        price_per_hour=price,
        interruption_probability=probability,
        interruption_at_ns=NOW + rng.choice([30, 300]) * SECOND
        if odd and rng.random() < 0.04
        else 0,
        stamp=stamp,
        leaving=leaving,
        idle_since_ns=NOW - rng.choice([0, 30, 90, 5000]) * SECOND if state is S.IDLE else 0,
        not_ready_since_ns=NOW - 1000 * SECOND if odd and rng.random() < 0.06 else 0,
        do_not_disrupt=odd and rng.random() < 0.05,
        pods=rng.choice([None, 0, 3]),
        last_error="HostLost: gone" if state is S.FAILED else "",
        excluded=odd and rng.random() < 0.03,
        taints=_taints(rng),
    )
    # Which of three owners keeps it out makes no difference to a decision.
    if machine.excluded and (is_reserved or is_backing_off):
        machine = machine.but(excluded=False, reserved=is_reserved, backing_off=is_backing_off)
    return machine


def _tolerations(rng: Random) -> list[Toleration]:
    return rng.sample(TOLERATIONS, rng.randint(1, 2)) if rng.random() < 0.35 else []


def _taints(rng: Random) -> tuple[Taint, ...]:
    few = rng.randint(1, 2) if rng.random() < 0.3 else 0
    return canonical_taints(rng.sample(TAINTS, few))


def _less_cpu(resources: dict[str, int]) -> dict[str, int]:
    return {**resources, "cpu": resources["cpu"] - 200}


def _state(rng: Random, shape: Shape) -> MachineState:
    if not shape.bound:
        return rng.choice([S.IDLE, S.SPECULATIVE, S.SPECULATIVE])
    return rng.choice(
        [S.SPECULATIVE] * 4
        + [S.IDLE] * 4
        + [S.CONFIGURED] * 6
        + [S.CONFIGURING, S.CREATING, S.CREATING, S.DRAINING, S.DELETING, S.FAILED]
    )


def _stamp(rng: Random, needs: list[Need]) -> Stamp | None:
    if not needs or rng.random() < 0.15:
        return None
    chosen = rng.choice(needs)
    stamp = Stamp.for_need(chosen, rng.randint(1, 99))
    if rng.random() < 0.2:
        stamp = Stamp(
            chosen.cluster,
            stamp.shape,
            stamp.group,
            "f" * 32,
            50,
            PenaltyBucket(2),
            PenaltyBucket(3),
            rng.randint(1, 99),
        )
    if rng.random() < 0.1:
        stamp = Stamp(
            chosen.cluster, "0" * 32, "gone", "e" * 32, 500, PenaltyBucket(1), PenaltyBucket(1), 7
        )
    return stamp


def _facts(rng: Random, shape: Shape) -> ClusterFacts:
    return ClusterFacts(
        reported=not shape.odd_states or rng.random() < 0.9,
        blocked=shape.limits and rng.random() < 0.08,
        overhead={"cpu": 300, "memory": 500} if rng.random() < 0.2 else {},
        tolerations_stated=rng.random() < 0.6,
        default_arch=rng.choice(["", "amd64", "amd64", "arm64"]),
        default_os=rng.choice(["", "linux", "linux", "windows"]) if rng.random() < 0.3 else "",
    )


def policy(rng: Random, clusters: list[str], shape: Shape) -> Policy:
    quotas = {}
    if shape.limits and rng.random() < 0.25:
        quotas[rng.choice(["p-1", "p-2"]), "eu"] = rng.randint(0, 12)
    return Policy(
        reclaim_hold=rng.choice([0, 30 * SECOND]),
        quotas=quotas,
        spend_limit_micro=rng.randint(0, 4_000_000)
        if shape.limits and rng.random() < 0.2
        else None,
        reclaim_budget=(
            {c: rng.randint(0, 3) for c in clusters}
            if shape.limits and rng.random() < 0.3
            else None
        ),
    )
