"""A scenario as the engine sees it."""

import json

from bigfleet.decision import Engine
from bigfleet.model import MachineState
from bigfleet.scenario.document import Scenario, parse_scenario
from bigfleet.scenario.state import START, ScenarioState

CPU = {"allocatable": {"cpu": "4"}}


def scenario(machines: list[dict[str, object]], needs: list[dict[str, object]]) -> Scenario:
    return parse_scenario(json.dumps({"machines": machines, "needs": needs}))


def test_rows_of_equal_identity_are_one_row_of_demand() -> None:
    asks: dict[str, object] = {"cluster": "c", "aggregate": {"cpu": "4"}}
    world = ScenarioState.of(scenario([], [asks, {**asks, "group": "g"}, asks]))
    assert len(world.demand) == 2
    assert world.row_of.tolist() == [0, 1, 0]
    assert world.file_row_of.tolist() == [0, 1]
    assert world.needs[0].aggregate == {"cpu": 8_000}


def test_idle_machines_became_idle_just_now_so_none_is_released() -> None:
    world = ScenarioState.of(
        scenario([{**CPU, "count": 3, "capacity_type": "Spot"}], [{"cluster": "c"}])
    )
    assert all(m.idle_since_ns == START for m in world.inventory)
    plan = Engine().decide(
        world.inventory.snapshot(), world.demand, world.policy, world.carry, world.now
    )
    assert plan.counts() == {}


def test_what_no_need_claims_is_reclaimed_in_the_first_cycle_costliest_first() -> None:
    bound = {**CPU, "state": "Configured", "assigned_need": 0}
    world = ScenarioState.of(
        scenario(
            [{**bound, "price": 1.0}, {**bound, "start": 1, "price": 0.1}],
            [{"cluster": "c", "aggregate": {"cpu": "4"}, "min_unit": {"cpu": "1"}}],
        )
    )
    plan = Engine().decide(
        world.inventory.snapshot(), world.demand, world.policy, world.carry, world.now
    )
    assert [(a.kind.title, a.machine) for a in plan] == [("Reclaim", "m-0000000")]


def test_every_state_can_be_in_a_file() -> None:
    machines = [
        {"start": i, "state": state.title, "assigned_need": 0}
        for i, state in enumerate(MachineState)
        if state
    ]
    world = ScenarioState.of(scenario(machines, [{"cluster": "c"}]))
    assert set(world.inventory.counts_by_state().values()) == {1}
