"""The closed loop: plans are carried out, transitions take their time, and it comes to rest."""

import json

import pytest

from bigfleet.model import MachineState
from bigfleet.scenario.document import parse_scenario
from bigfleet.scenario.errors import DelayError
from bigfleet.scenario.state import ScenarioState
from bigfleet_lab.simulate.loop import Delay, Delays, Loop

SHAPE = {"allocatable": {"cpu": "4", "memory": "16Gi"}, "capacity_type": "OnDemand", "price": 0.2}
SLOW = Delays(Delay(0, 20), Delay(0, 10), Delay(0, 20))


def world(machines: list[dict[str, object]], needs: list[dict[str, object]]) -> ScenarioState:
    return ScenarioState.of(parse_scenario(json.dumps({"machines": machines, "needs": needs})))


def asks(cpu: int, **keys: object) -> dict[str, object]:
    return {"cluster": "c", "aggregate": {"cpu": str(cpu)}, "min_unit": {"cpu": "1"}, **keys}


def test_machines_are_created_bound_and_then_left_in_peace() -> None:
    loop = Loop(world([{**SHAPE, "count": 9, "state": "Speculative"}], [asks(20)]), SLOW, seed=4)
    for _ in loop.run(70):
        pass
    assert loop.settled_at is not None
    assert loop.world.inventory.counts_by_state()[MachineState.CONFIGURED] == 5
    assert loop.reports[0].actions == {"Provision": 5}
    assert sum(report.actions.get("Bootstrap", 0) for report in loop.reports) == 5
    assert (loop.over_acquisition, loop.reclaims_at_unchanged_demand) == (0, 0)
    assert loop.reports[-1].dollars_per_hour == pytest.approx(5 * 0.2)


def test_what_is_too_much_drains_becomes_idle_and_is_released() -> None:
    loop = Loop(
        world([{**SHAPE, "count": 4, "state": "Configured", "assigned_need": 0}], [asks(8)]),
        SLOW,
        seed=1,
    )
    for _ in loop.run(160):
        pass
    totals = loop.world.inventory.counts_by_state()
    assert totals[MachineState.CONFIGURED] == 2
    assert totals[MachineState.SPECULATIVE] == 2
    # The surplus was there from the start: no one ever needed it.
    assert loop.reclaims_at_unchanged_demand == 0


def test_a_preempted_machine_goes_to_the_need_that_preempted_it() -> None:
    loop = Loop(
        world(
            [{**SHAPE, "count": 2, "state": "Configured", "assigned_need": 0}],
            [asks(8), asks(4, cluster="d", priority=1000)],
        ),
        SLOW,
        seed=2,
    )
    for _ in loop.run(80):
        pass
    assert loop.settled_at is not None
    assert sorted(m.cluster for m in loop.world.inventory) == ["c", "d"]
    assert sum(report.actions.get("Preempt", 0) for report in loop.reports) == 1


def test_the_same_seed_gives_the_same_history() -> None:
    def history(seed: int) -> list[object]:
        loop = Loop(world([{**SHAPE, "count": 9, "state": "Speculative"}], [asks(20)]), SLOW, seed)
        return list(loop.run(30))

    assert history(7) == history(7)
    assert history(7) != history(8)


def test_transitions_under_way_in_the_file_end_too() -> None:
    machines = [
        {**SHAPE, "start": i, "state": state, "assigned_need": 0}
        for i, state in enumerate(("Creating", "Configuring", "Draining", "Deleting"))
    ]
    loop = Loop(world(machines, [asks(4)]), SLOW, seed=3)
    assert loop.under_way == 4
    for _ in loop.run(60):
        pass
    assert loop.under_way == 0


@pytest.mark.parametrize(("text", "delay"), [("0..6", Delay(0, 6)), ("3", Delay(3, 3))])
def test_a_delay_is_a_range_of_cycles(text: str, delay: Delay) -> None:
    assert Delay.parse(text) == delay


@pytest.mark.parametrize("text", ["", "a..b", "6..0", "-1..2", "1...2", "1.5"])
def test_anything_else_is_no_delay(text: str) -> None:
    with pytest.raises(DelayError, match=r"delay"):
        Delay.parse(text)
