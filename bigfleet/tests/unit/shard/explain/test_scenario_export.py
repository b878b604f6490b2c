"""Exporting a state as a scenario: racks, names, and what a file refuses."""

import json
from dataclasses import replace

import pytest

from bigfleet.model import (
    Machine,
    Need,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
    SpreadMode,
)
from bigfleet.model.columns import Demand
from bigfleet.scenario.document import Scenario, parse_scenario
from bigfleet.scenario.state import machines_of
from bigfleet.shard.explain.scenario_export import ExportError, scenario_pieces
from living import Living
from worlds import RACK, A, S, label, machine, need, serving


def export(machines: list[Machine], needs: list[Need]) -> str:
    living = Living()
    fleet = living._put(machines).snapshot()
    return b"".join(
        scenario_pieces(fleet, Demand.of(needs, {}, living.symbols), "shard-a")
    ).decode()


def read_back(machines: list[Machine], needs: list[Need]) -> Scenario:
    return parse_scenario(export(machines, needs))


def test_equal_machines_of_one_rack_are_one_record() -> None:
    machines = [machine(f"m-{n}", rack="east-1") for n in range(3)]
    machines += [machine(f"x-{n}", rack="west-9") for n in range(2)]
    scenario = read_back(machines, [])
    assert [(r.start, r.count, r.rack_size) for r in scenario.machines] == [(0, 3, 3), (3, 2, 3)]


def test_machines_without_a_rack_share_none() -> None:
    machines = [machine(f"m-{n}", rack="r") for n in range(2)] + [
        machine(f"x-{n}") for n in range(3)
    ]
    back = list(machines_of(read_back(machines, [])))
    assert len({m.labels[RACK] for m in back}) == 4


def test_rack_names_in_demand_follow_the_machines() -> None:
    asked = need(where=[label(RACK, "In", "east-1", "nowhere")])
    machines = [machine("m-1", rack="west-9"), machine("m-2", rack="east-1", cpu=8)]
    scenario = read_back(machines, [asked])
    (requirement,) = scenario.needs[0].profile.requirements
    east = next(m for m in machines_of(scenario) if m.instance_type == "t8")
    assert east.labels[RACK] in requirement.values
    assert len(requirement.values) == 2


def test_stamps_lead_to_rows() -> None:
    first, second = need(cpu=4), need(cpu=8, priority=5)
    changed = need(cpu=8, priority=6)
    gone = need(cpu=1, where=[label("pool", "In", "x")])
    machines = [
        serving("m-1", second),
        serving("m-2", gone),
        serving("m-3", changed, price=2.0),
        machine("m-4", S.IDLE, serves=first),
    ]
    scenario = read_back(machines, [first, second])
    assigned = {(r.price, r.state): r.assigned_need for r in scenario.machines}
    assert assigned[2.0, S.CONFIGURED] in (0, 1)
    assert assigned[1.0, S.IDLE] == 0
    by_need = {r.assigned_need for r in scenario.machines if r.state is S.CONFIGURED}
    assert None in by_need
    assert 1 in by_need


def test_excluded_machines_are_left_out() -> None:
    assert read_back([machine("m-1", excluded=True), machine("m-2")], []).machine_count == 1


def test_requirements_a_file_cannot_hold_keep_their_meaning() -> None:
    def asks(*requirements: Requirement) -> list[Requirement]:
        asked = replace(need(), profile=Profile(requirements))
        (read,) = read_back([], [asked]).needs
        return list(read.profile.requirements)

    for impossible in (
        Requirement("pool", RequirementOperator.IN),
        Requirement("pool", RequirementOperator.UNSPECIFIED),
        Requirement("", RequirementOperator.EXISTS),
    ):
        got = asks(impossible)
        assert {r.operator for r in got} == {
            RequirementOperator.EXISTS,
            RequirementOperator.DOES_NOT_EXIST,
        }
    assert (
        asks(
            Requirement("", RequirementOperator.NOT_IN, ("a",)),
            Requirement("p", RequirementOperator.NOT_IN),
        )
        == []
    )


def test_a_spread_that_says_nothing_does_not_constrain() -> None:
    asked = replace(need(), profile=Profile.of(spread=[Spread("z", 1, SpreadMode.UNSPECIFIED)]))
    assert read_back([], [asked]).needs[0].profile.spread[0].when is SpreadMode.SCHEDULE_ANYWAY


def test_texts_that_cannot_be_printed_are_written_out() -> None:
    asked = replace(need(), group="a\nb")
    assert read_back([], [asked]).needs[0].group == "a\\nb"


def test_an_empty_shard_is_an_empty_scenario() -> None:
    assert json.loads(export([], [])) == {"name": "shard-a", "machines": [], "needs": []}


def test_a_fleet_beyond_seven_digits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bigfleet.shard.explain.scenario_export.MOST_INDEX", 2)
    with pytest.raises(ExportError, match="seven digits"):
        export([machine(f"m-{n}") for n in range(4)], [])


def test_a_bound_machine_keeps_its_cluster() -> None:
    scenario = read_back([serving("m-1", need(A))], [])
    assert scenario.machines[0].cluster == A
