"""A roll-up, however its rows were kept and changed, says what adding up pod by pod says."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.model import (
    LABEL_ZONE,
    PenaltyBucket,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
    SpreadMode,
    size_class,
)
from bigfleet.wire.needs import need_from_proto
from bigfleet_lab.simcluster import Mix, Workload, WorkObject, make_workload
from bigfleet_lab.simcluster.demand_changes import Change, apply
from bigfleet_lab.simcluster.rollup import RollUps

Row = tuple[tuple[str, str, str], dict[str, int], dict[str, int]]

PROFILES = [
    Profile.of(priority=1),
    Profile.of(priority=1, interruption=PenaltyBucket.ZERO),
    Profile.of(
        [
            Requirement.of("b", RequirementOperator.IN, ["2", "1"]),
            Requirement.of("a", RequirementOperator.EXISTS),
        ]
    ),
    Profile.of(spread=[Spread(LABEL_ZONE, 1)]),
    Profile.of(spread=[Spread(LABEL_ZONE, 1, SpreadMode.SCHEDULE_ANYWAY)]),
    Profile.of(),
    Profile.of([Requirement.of(LABEL_ZONE, RequirementOperator.SAME)]),
]
REQUESTS = [{"cpu": 100}, {"cpu": 128}, {"cpu": 129}, {"cpu": 100, "memory": 2**30 * 1000}]


def objects(rng: Random, count: int) -> list[WorkObject]:
    made = []
    for number in range(count):
        profile = rng.choice(PROFILES)
        group = f"g-{rng.randint(0, 2)}" if profile.same else ""
        made.append(WorkObject(f"o-{number}", profile, rng.choice(REQUESTS), group))
    return made


def counted(workload: Workload) -> list[Row]:
    """Pod by pod, from nothing."""
    rows: dict[tuple[str, str, str], tuple[dict[str, int], dict[str, int]]] = {}
    for what in workload:
        hard = [s for s in what.profile.spread if s.when is not SpreadMode.SCHEDULE_ANYWAY]
        was = what.profile
        profile = Profile.of(
            was.requirements, hard, was.priority, was.interruption, was.reclamation
        )
        key = (profile.fingerprint, what.group, size_class(what.request))
        for _ in range(workload.replicas(what.name)):
            total, unit = rows.setdefault(key, ({}, {}))
            for name, amount in what.request.items():
                total[name] = total.get(name, 0) + amount
                unit[name] = max(unit.get(name, 0), amount)
    return sorted((key, total, unit) for key, (total, unit) in rows.items())


def told(rollups: RollUps) -> list[Row]:
    message = rollups.message("c-1", 7)
    assert message.rollup.cluster_id == "c-1"
    assert message.rollup.timestamp_unix_nanos == 7
    needs = [need_from_proto(row, "c-1") for row in message.rollup.needs]
    return sorted((need.key, dict(need.aggregate), dict(need.min_unit)) for need in needs)


@given(st.integers(0, 2**32), st.integers(0, 12), st.integers(0, 12))
def test_the_rollup_equals_a_sum_pod_by_pod_after_every_change(
    seed: int, count: int, changes: int
) -> None:
    rng, workload = Random(seed), Workload()
    waiting = objects(rng, count)
    rollups = RollUps(workload)
    for _ in range(changes + count):
        choice = rng.random()
        if choice < 0.4 and waiting:
            workload.add(waiting.pop(), rng.randint(0, 4))
        elif choice < 0.5 and len(workload):
            gone = workload[rng.choice(workload.names)]
            workload.remove(gone.name)
            waiting.append(WorkObject(gone.name, rng.choice(PROFILES[:6]), rng.choice(REQUESTS)))
        else:
            apply(workload, rng.choice(list(Change)), rng.random(), rng)
        assert told(rollups) == counted(workload)


@given(st.integers(0, 2**32), st.integers(0, 60))
def test_a_generated_workload_has_as_many_rows_as_asked_for(seed: int, rows: int) -> None:
    mix = Mix(zones=("a", "b"), cpus=(100,), priorities=(0,), gibibytes_per_cpu=(2,))
    workload = make_workload(Random(seed), rows, mix)
    assert len(RollUps(workload)) == rows
    again = make_workload(Random(seed), rows, mix)
    assert RollUps(again).message("c", 1) == RollUps(workload).message("c", 1)


@given(st.integers(0, 2**32))
def test_rows_are_in_canonical_form(seed: int) -> None:
    workload = make_workload(Random(seed), 20, Mix(zones=("b", "a", "c"), zonal=1.0))
    for row in RollUps(workload).message("c", 1).rollup.needs:
        keys = [(one.key, one.operator) for one in row.requirements]
        assert keys == sorted(keys)
        assert all(list(one.values) == sorted(one.values) for one in row.requirements)
        assert bool(row.group) == any(one.operator == 5 for one in row.requirements)
        assert row.size_class
