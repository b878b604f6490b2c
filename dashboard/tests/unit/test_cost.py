"""Where the money goes, and where it need not."""

import pytest

from bigfleet_dashboard.cost import cost_document, flags, spend_per_hour
from worlds_of_machines import CONFIGURED, FAILED, IDLE, SPECULATIVE, SPOT, fleet_of, machine


def test_what_does_not_exist_and_what_failed_costs_nothing() -> None:
    fleet = fleet_of([machine("a", IDLE), machine("b", SPECULATIVE), machine("c", FAILED)])
    assert spend_per_hour(fleet.map) == pytest.approx(0.38)


def test_pinned_work_on_spot_is_a_red_flag() -> None:
    fleet = fleet_of(
        [machine("a", CONFIGURED, kind=SPOT, price=0.1, cluster="c", penalty="inf", risk=0.3)]
    )
    assert [flag.kind for flag in flags(fleet.map)] == ["pinned_on_spot"]


def test_idle_money_is_flagged_and_idle_machines_that_are_free_are_not() -> None:
    free = machine("b", IDLE, kind=1, price=0.0)
    (flag,) = flags(fleet_of([machine("a", IDLE), free]).map)
    assert (flag.kind, flag.machines) == ("idle_money", 1)
    assert flag.dollars_per_hour == pytest.approx(0.38)


def test_a_machine_is_too_expensive_when_a_free_machine_of_its_type_and_zone_costs_less() -> None:
    serving = machine("a", CONFIGURED, cluster="c", penalty="0")
    spot = machine("b", SPECULATIVE, kind=SPOT, price=0.12, risk=0.3)
    (flag,) = flags(fleet_of([serving, spot]).map)
    assert (flag.kind, flag.machines) == ("more_expensive_than_necessary", 1)
    assert flag.dollars_per_hour == pytest.approx(0.26)
    elsewhere = machine("b", SPECULATIVE, kind=SPOT, price=0.12, risk=0.3, zone="z")
    assert list(flags(fleet_of([serving, elsewhere]).map)) == []


def test_spot_is_not_cheaper_where_an_interruption_costs_more_than_it_saves() -> None:
    serving = machine("a", CONFIGURED, cluster="c", penalty="16")
    spot = machine("b", SPECULATIVE, kind=SPOT, price=0.12, risk=0.3)
    assert list(flags(fleet_of([serving, spot]).map)) == []


def test_one_free_machine_makes_one_machine_too_expensive_and_no_more() -> None:
    serving = [machine(f"a{n}", CONFIGURED, cluster="c", penalty="0") for n in range(3)]
    spot = machine("b", SPECULATIVE, kind=SPOT, price=0.12, risk=0.3)
    (flag,) = flags(fleet_of([*serving, spot]).map)
    assert flag.machines == 1


def test_the_parts_of_the_spend_add_up_to_the_whole() -> None:
    fleet = fleet_of(
        [
            machine("a", CONFIGURED, cluster="x", penalty="0.5"),
            machine("b", IDLE, kind=SPOT, price=0.12),
        ]
    )
    document = cost_document(fleet.map)
    for part in ("by_capacity_type", "by_state", "by_cluster"):
        values = document[part]
        assert isinstance(values, dict)
        assert sum(values.values()) == pytest.approx(0.5)
    table = document["by_capacity_type_and_penalty"]
    assert isinstance(table, list)
    assert {(r["capacity_type"], r["penalty"]) for r in table} == {
        ("OnDemand", "$0.50"),
        ("Spot", "not bound"),
    }


def test_an_empty_fleet_costs_nothing_and_breaks_nothing() -> None:
    document = cost_document(fleet_of().map)
    assert (document["dollars_per_hour"], document["flags"]) == (0.0, [])
