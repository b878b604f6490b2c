"""Objects, how they change, and the rows they become."""

from random import Random

import pytest

from bigfleet.model import (
    LABEL_ZONE,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
    SpreadMode,
    size_class,
)
from bigfleet_lab.simcluster import Mix, Workload, WorkloadError, WorkObject, make_workload
from bigfleet_lab.simcluster.demand_changes import Change, apply
from bigfleet_lab.simcluster.rollup import RollUps, row_key

PLAIN = Profile.of()
GANG = Profile.of([Requirement.of(LABEL_ZONE, RequirementOperator.SAME)])


def of(*replicas: int) -> Workload:
    workload = Workload()
    for number, count in enumerate(replicas):
        workload.add(WorkObject(f"o-{number}", PLAIN, {"cpu": 100}), count)
    return workload


def counts(workload: Workload) -> list[int]:
    return [workload.replicas(name) for name in workload.names]


def test_a_change_is_told_once_and_no_change_not_at_all() -> None:
    workload, told = of(2), list[str]()
    workload.on_change.append(told.append)
    workload.scale("o-0", 3)
    workload.scale("o-0", 3)
    assert told == ["o-0"]


@pytest.mark.parametrize(
    "mistake",
    [
        lambda w: w.add(WorkObject("o-0", PLAIN, {"cpu": 1}), 1),
        lambda w: w.scale("unknown", 1),
        lambda w: w.scale("o-0", -1),
        lambda w: WorkObject("empty", PLAIN, {}),
        lambda w: WorkObject("half-a-gang", GANG, {"cpu": 1}),
        lambda w: apply(w, Change.STEP, -1.0, Random(1)),
        lambda w: make_workload(Random(1), -1),
        lambda w: Mix(gangs=2.0),
        lambda w: Mix(cpus=()),
    ],
)
def test_demand_that_makes_no_sense_is_refused_with_a_remedy(mistake: object) -> None:
    with pytest.raises(WorkloadError, match=r"use|add it|scale it|give it|together|needs"):
        mistake(of(1))  # type: ignore[operator]


def test_a_step_scales_everything_and_zero_is_nothing() -> None:
    workload = of(4, 1, 0)
    apply(workload, Change.STEP, 0.5, Random(1))
    assert counts(workload) == [2, 1, 0]
    apply(workload, Change.STEP, 3.0, Random(1))
    assert counts(workload) == [6, 3, 0]
    apply(workload, Change.STEP, 0.0, Random(1))
    assert counts(workload) == [0, 0, 0]


def test_growth_and_shedding_touch_a_share_of_the_objects() -> None:
    workload = of(*[3] * 10)
    apply(workload, Change.GROW, 0.3, Random(1))
    assert sorted(counts(workload)) == [3] * 7 + [6] * 3
    apply(workload, Change.SHED, 0.5, Random(2))
    assert counts(workload).count(0) == 5


def test_churn_moves_by_one_pod_and_leaves_gangs_whole() -> None:
    workload = of(*[3] * 20)
    workload.add(WorkObject("gang", GANG, {"cpu": 100}, "g"), 5)
    apply(workload, Change.CHURN, 1.0, Random(1))
    assert workload.replicas("gang") == 5
    assert set(counts(workload)[:20]) == {2, 4}


def test_turnover_ends_jobs_and_begins_others_of_the_same_kind() -> None:
    workload = of(3, 0)
    workload.add(WorkObject("gang", GANG, {"cpu": 100}, "g"), 5)
    for seed in (1, 2):
        before = set(workload.names)
        apply(workload, Change.TURNOVER, 1.0, Random(seed))
        assert not before & set(workload.names)
        assert sorted(counts(workload)) == [0, 3, 5]
    (gang,) = [each for each in workload if each.group]
    assert gang.group.startswith("g.")
    assert gang.name == f"gang.{gang.group.removeprefix('g.')}"


def test_a_size_class_is_the_names_and_the_power_of_two_of_each() -> None:
    assert size_class({"cpu": 1_024}) == size_class({"cpu": 513})
    assert size_class({"cpu": 1_024}) != size_class({"cpu": 1_025})
    assert size_class({"cpu": 1_024}) != size_class({"cpu": 1_024, "gpu": 1_024})
    assert size_class({"a": 1, "b": 2}) == size_class({"b": 2, "a": 1})


def test_spreading_that_is_only_a_wish_makes_no_row_of_its_own() -> None:
    wish = Profile.of(spread=[Spread(LABEL_ZONE, 1, SpreadMode.SCHEDULE_ANYWAY)])
    hard = Profile.of(spread=[Spread(LABEL_ZONE, 1)])
    keys = {row_key(WorkObject("o", one, {"cpu": 1})) for one in (PLAIN, wish, hard)}
    assert len(keys) == 2


def test_an_unchanged_row_is_not_made_again() -> None:
    workload = make_workload(Random(1), 50)
    rollups = RollUps(workload)
    rollups.message("c", 1)
    before = dict(rollups._bytes)
    name = workload.names[0]
    workload.scale(name, workload.replicas(name) + 1)
    rollups.message("c", 2)
    after = rollups._bytes
    assert sum(before[key] is not after[key] for key in before) == 1


def test_overhead_is_told_with_every_rollup() -> None:
    rollups = RollUps(of(1), {"cpu": 250})
    assert dict(rollups.message("c", 1).rollup.node_overhead.resources) == {"cpu": "250m"}
    assert not RollUps(of(1)).message("c", 1).rollup.HasField("node_overhead")


def test_a_pod_may_ask_for_a_place_among_the_pods_too() -> None:
    workload = make_workload(Random(1), 3, Mix(count_pods=True))
    rows = RollUps(workload).message("c", 1).rollup.needs
    assert all(row.min_unit["pods"] == "1" for row in rows)
