"""Plans told by the rows of their file: added-up rows, folded gangs, and the wishes of a need."""

import json

from bigfleet.decision import Engine, Reason
from bigfleet.model import MachineState
from bigfleet.scenario.document import parse_scenario
from bigfleet.scenario.outcome import ScenarioOutcome
from bigfleet.scenario.state import ScenarioState
from bigfleet.scenario.supply import by_state, sieves
from bigfleet_lab.bench.benchmark import measure
from bigfleet_lab.simulate.loop import Delays, Loop

SHAPE = {"allocatable": {"cpu": "8", "memory": "32Gi"}, "rack_size": 10}
GANG = {
    "cluster": "c",
    "requirements": [{"key": "topology.bigfleet/rack", "op": "Same"}],
    "aggregate": {"cpu": "4"},
    "min_unit": {"cpu": "1"},
}


def outcome(machines: list[dict[str, object]], needs: list[dict[str, object]]) -> ScenarioOutcome:
    world = ScenarioState.of(parse_scenario(json.dumps({"machines": machines, "needs": needs})))
    plan = Engine().decide(
        world.inventory.snapshot(), world.demand, world.policy, world.carry, world.now
    )
    return ScenarioOutcome(world, plan)


def gangs(count: int) -> list[dict[str, object]]:
    return [{**GANG, "group": f"g-{i}"} for i in range(count)]


def test_rows_that_were_added_up_share_their_verdict() -> None:
    row: dict[str, object] = {"cluster": "c", "aggregate": {"cpu": "8"}, "min_unit": {"cpu": "1"}}
    told = outcome([{**SHAPE, "count": 2}], [row, {**row, "cluster": "d"}, row])
    needs = list(told.needs())
    assert [need.index for need in needs] == [0, 1, 2]
    assert [need.claimed for need in needs] == [2, 0, 2]
    assert [need.satisfied for need in needs] == [True, False, True]
    assert {action.need for action in told.actions()} == {0}


def test_every_member_of_a_folded_row_is_met_when_the_row_is() -> None:
    told = outcome([{**SHAPE, "count": 4}], gangs(5))
    assert int(told.plan.verdicts.need[0]) == -1
    assert all(need.satisfied and need.reason is Reason.NONE for need in told.needs())
    assert [need.claimed for need in told.needs()] == [1] * 5
    # Each machine is taken for the gang whose stamp it carries.
    assert len({action.need for action in told.actions()}) == 3


def test_as_many_members_of_a_folded_row_are_unmet_as_are_missing() -> None:
    told = outcome([{**SHAPE, "count": 2}], gangs(7))
    needs = list(told.needs())
    unmet = [need for need in needs if not need.satisfied]
    assert len(unmet) == 3
    assert all(need.deficit == {"cpu": 4_000} for need in unmet)
    assert all(need.claimed == 0 for need in unmet)
    assert [told.need(need.index) for need in needs] == needs


def test_benchmark_and_loop_count_as_many_unmet_needs_as_the_plan_lists() -> None:
    told = outcome(
        [{**SHAPE, "count": 2}], [*gangs(7), {"cluster": "d", "aggregate": {"gpu": "1"}}]
    )
    assert sum(not need.satisfied for need in told.needs()) == 4
    found = measure(told.world, 1, steady=False, clock=lambda: 0.0)
    assert found.unmet == 4
    loop = Loop(told.world, Delays(), seed=1)
    loop.step()
    assert loop.reports[-1].unmet == 4


def test_reclaims_are_for_no_need() -> None:
    told = outcome([{**SHAPE, "state": "Configured", "cluster": "c"}], [{"cluster": "c"}])
    assert [(action.kind.title, action.need) for action in told.actions()] == [("Reclaim", None)]


def test_the_sieves_of_a_need_end_at_the_wish_that_no_machine_holds() -> None:
    told = outcome(
        [{**SHAPE, "count": 3, "labels": {"pool": "a"}}, {**SHAPE, "start": 9, "state": "Failed"}],
        [
            {
                "cluster": "c",
                "requirements": [
                    {"key": "pool", "op": "In", "values": ["a"]},
                    {"key": "topology.bigfleet/rack", "op": "In", "values": ["r-00000"]},
                ],
                "aggregate": {"cpu": "4", "licence": "1"},
                "min_unit": {"cpu": "2"},
            }
        ],
    )
    need = told.world.needs[0]
    found = list(sieves(told.plan.fleet, need))
    assert [sieve.left for sieve in found] == [3, 3, 3, 3, 0]
    assert found[-1].wish == "a machine offers some licence"
    assert by_state(told.plan.fleet, need) == {}


def test_supply_is_counted_by_state() -> None:
    told = outcome(
        [{**SHAPE, "count": 3}, {**SHAPE, "start": 9, "count": 2, "state": "Speculative"}],
        [{"cluster": "c", "aggregate": {"cpu": "4"}, "min_unit": {"cpu": "2"}}],
    )
    assert by_state(told.plan.fleet, told.world.needs[0]) == {
        MachineState.SPECULATIVE: 2,
        MachineState.IDLE: 3,
    }
