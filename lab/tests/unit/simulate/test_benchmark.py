"""Timed cycles: what is measured, what is put back, and what a wrong result becomes."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from bigfleet.model.columns import MachineColumns
from bigfleet.scenario.state import ScenarioState
from bigfleet_lab.bench.benchmark import Churn, is_steady, measure
from bigfleet_lab.simulate.workloads import ExpectedResult, make_workload


def ticking() -> Callable[[], float]:
    counter = itertools.count()
    return lambda: float(next(counter))


def columns(fleet: MachineColumns) -> list[list[int]]:
    names = ("state", "cluster", "stamp", "sequence", "idle_since", "flags", "leaving_for")
    return [getattr(fleet, name).tolist() for name in names]


@pytest.mark.parametrize("name", ["cold", "reclaim", "preempt"])
def test_a_repeated_cycle_leaves_the_fleet_as_it_found_it(name: str) -> None:
    workload = make_workload(name, 500)
    world = ScenarioState.of(workload.scenario)
    before = columns(world.inventory.snapshot())
    found = measure(world, 3, steady=False, clock=ticking(), expected=workload.expected)
    assert found.complaints == []
    assert columns(world.inventory.snapshot()) == before


def test_a_steady_fleet_meets_every_need_in_every_cycle() -> None:
    workload = make_workload("steady", 1_000)
    world = ScenarioState.of(workload.scenario)
    found = measure(world, 40, steady=True, clock=ticking(), expected=workload.expected)
    assert found.complaints == []
    assert len(found.whole.seconds) == 40


def test_the_result_has_the_shape_of_the_specification() -> None:
    world = ScenarioState.of(make_workload("cold", 500).scenario)
    found = measure(world, 2, steady=False, clock=ticking()).to_json()
    assert list(found) == [
        *("whole", "phases", "actions", "unmet", "digest"),
        *("peak_memory_bytes", "bytes_per_machine"),
    ]
    phases = found["phases"]
    assert isinstance(phases, dict)
    assert list(phases) == ["normalise", "phase1", "phase2", "phase3"]
    assert all(list(times) == ["p50", "p95", "p99", "max"] for times in phases.values())
    # The clock ticks once per reading: a phase is one tick, a cycle its two ends and five more.
    assert phases["phase1"]["max"] == 1_000.0
    assert found["whole"] == {"p50": 6e3, "p95": 6e3, "p99": 6e3, "max": 6e3}


def test_the_digest_does_not_depend_on_the_number_of_cycles_of_a_repeated_scenario() -> None:
    scenario = make_workload("cold", 500).scenario
    digests = {
        measure(ScenarioState.of(scenario), cycles, steady=False, clock=ticking()).digest
        for cycles in (1, 4)
    }
    assert len(digests) == 1


def test_a_wrong_result_is_a_complaint() -> None:
    world = ScenarioState.of(make_workload("cold", 500).scenario)
    found = measure(world, 1, steady=False, clock=ticking(), expected=ExpectedResult(acquired=1))
    assert "machines acquired, must be 1" in found.complaints[0]


def test_three_percent_of_the_rows_change_by_one_unit_and_go_back() -> None:
    demand = ScenarioState.of(make_workload("steady", 5_000).scenario).demand
    churn = Churn(demand, seed=5)
    changed = churn.next(demand, now=77)
    rows = np.flatnonzero((changed.aggregate != demand.aggregate).any(axis=1))
    assert len(rows) == 15
    step = np.abs(changed.aggregate[rows] - demand.aggregate[rows])
    assert (np.abs(step - demand.unit[rows]) <= 1).all()
    shrunk = (changed.aggregate < demand.aggregate).any(axis=1)
    assert (changed.shrunk_at[shrunk] == 77).all()
    assert (changed.shrunk_at[~shrunk] == demand.shrunk_at[~shrunk]).all()
    for now in range(400):
        changed = churn.next(changed, now)
        away = np.abs(changed.aggregate - demand.aggregate)
        assert (away <= demand.unit + 1).all()
        assert ((changed.aggregate_milli >= 0) & (changed.aggregate_milli < 1000)).all()


def test_steady_scenarios_are_told_by_their_name() -> None:
    assert is_steady("steady-5000")
    assert not is_steady("cold-5000")
