"""The benchmark's workloads: seeded, of the size asked for, with the result they promise."""

import pytest

from bigfleet.decision import ActionKind, Engine
from bigfleet.scenario.document import RACK_LABEL, parse_scenario
from bigfleet.scenario.errors import WorkloadError
from bigfleet.scenario.outcome import unmet_needs
from bigfleet.scenario.state import ScenarioState
from bigfleet.scenario.writer import scenario_text
from bigfleet_lab.simulate.workloads import (
    SIZES,
    WORKLOADS,
    ExpectedResult,
    make_workload,
    need_count,
)


@pytest.mark.parametrize("name", WORKLOADS)
def test_one_cycle_has_the_result_the_workload_promises(name: str) -> None:
    workload = make_workload(name, 1_000)
    world = ScenarioState.of(workload.scenario)
    plan = Engine().decide(
        world.inventory.snapshot(), world.demand, world.policy, world.carry, world.now
    )
    assert workload.expected.complaints(plan.counts(), unmet_needs(plan)) == []


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_has_the_machines_and_needs_asked_for_and_no_row_twice(name: str) -> None:
    workload = make_workload(name, 1_000)
    needs = workload.scenario.needs
    assert workload.scenario.machine_count == 1_000
    assert abs(len(needs) - need_count(name, 1_000)) <= 2
    assert len({(need.cluster, need.key) for need in needs}) == len(needs)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_is_the_same_for_the_same_seed_and_survives_its_file(name: str) -> None:
    scenario = make_workload(name, 500, seed=3).scenario
    assert make_workload(name, 500, seed=3).scenario == scenario
    assert make_workload(name, 500, seed=4).scenario != scenario
    assert parse_scenario(scenario_text(scenario)) == scenario


def test_the_suite_has_the_numbers_of_needs_the_specification_names() -> None:
    assert [need_count("cold", size) for size in SIZES] == [200, 2_000, 20_000]
    assert [need_count("steady", size) for size in SIZES] == [500, 500, 5_000]
    assert [need_count("one-to-one", size) for size in SIZES] == list(SIZES)


def test_ninety_three_percent_of_the_gang_workload_is_co_located() -> None:
    needs = make_workload("gangs", 5_000).scenario.needs
    same = [need for need in needs if need.profile.same]
    assert len(same) / len(needs) == pytest.approx(0.93, abs=0.01)
    assert all(need.profile.same[0].key == RACK_LABEL for need in same)


def test_a_quarter_of_the_other_gang_workload_needs_whole_machines() -> None:
    needs = make_workload("gangs-whole", 50_000).scenario.needs
    assert sum(bool(need.profile.same) for need in needs) == 500
    assert len(needs) == 2_000


def test_a_result_that_differs_is_named() -> None:
    expected = ExpectedResult(unmet=0, acquired=3, reclaimed=0, preempted=0)
    actions = {ActionKind.BOOTSTRAP.title: 2, ActionKind.RECLAIM.title: 1}
    assert expected.complaints(actions, 4) == [
        "4 unmet needs, must be 0",
        "2 machines acquired, must be 3",
        "1 reclaims, must be 0",
    ]


def test_unknown_and_tiny_workloads_are_refused() -> None:
    with pytest.raises(WorkloadError, match="'warm' is unknown: use one of steady"):
        make_workload("warm", 5_000)
    with pytest.raises(WorkloadError, match="10 machines cannot be made"):
        make_workload("cold", 10)
