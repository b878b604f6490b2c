"""Needs as rows, and one need in words."""

import pytest

from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from bigfleet_dashboard.explain import drawer
from bigfleet_dashboard.state.needs import NeedFilter, priority_class, row_of, select
from bigfleet_lab.simulate.demo_fleet import TIERS
from worlds_of_machines import need

STARVED, NO_SUPPLY, TOPOLOGY, STOCK_OUT = 1, 2, 3, 102


@pytest.mark.parametrize(
    ("priority", "name"),
    [
        (2_000_000, "critical"),
        (1_000_000, "critical"),
        (1_000, "service"),
        (100, "batch"),
        (99, "other"),
        (-5, "other"),
    ],
)
def test_a_priority_belongs_to_the_class_metrics_count_it_under(priority: int, name: str) -> None:
    assert priority_class(priority) == name


def test_the_tiers_of_the_demo_are_of_the_classes_the_guide_says() -> None:
    assert {tier.name: priority_class(tier.priority) for tier in TIERS} == {
        "batch": "batch",
        "production": "service",
        "critical": "critical",
    }


def test_unmet_needs_come_first_and_the_most_important_of_them_before_all() -> None:
    rows = [
        row_of("s", v)
        for v in (need(priority=5), need(priority=1, reason=1), need(priority=9, reason=1))
    ]
    assert [row.priority for row in select(rows, NeedFilter())] == [9, 1, 5]
    assert [row.priority for row in select(rows, NeedFilter(verdict="met"))] == [5]
    assert [row.priority for row in select(rows, NeedFilter(), "priority")] == [9, 5, 1]


def test_a_row_is_known_by_what_it_asks_for_not_by_how_much() -> None:
    one, two, other = (
        row_of("s", need(cpu=cpu, group=g)) for cpu, g in (("8", ""), ("9", ""), ("8", "g"))
    )
    assert one.key == two.key
    assert one.key != other.key


@pytest.mark.parametrize("reason", [1, 2, 3, 4, 100, 101, 102, 103, 104])
def test_every_reason_has_words_and_something_that_would_help(reason: int) -> None:
    told = drawer(row_of("s", need(reason=reason, age=7)))
    assert len(told.why) >= 2
    assert told.helps
    assert any("7 cycles" in line for line in told.why)
    assert any("in other shards" in line for line in told.tried)


def test_quantities_are_told_as_people_say_them() -> None:
    view = need(reason=STARVED, cpu="24500m")
    view.residual_deficit.resources["cpu"] = "500m"
    told = drawer(row_of("s", view))
    assert told.title == "atlas: cpu 24.5"
    assert told.summary == "has 0 machines; missing: cpu 0.5"


@pytest.mark.parametrize(
    ("have", "missing", "told"),
    [(11, "120", "About 15 more machines like those it has would be enough."), (0, "208", "")],
)
def test_what_is_missing_is_counted_in_machines_where_it_has_some(
    have: int, missing: str, told: str
) -> None:
    view = need(reason=STARVED, cpu="208")
    view.claimed_machine_count = have
    view.residual_deficit.resources["cpu"] = missing
    helps = drawer(row_of("s", view)).helps
    assert (told in helps) == bool(told)
    assert any(line.startswith("About") for line in helps) == bool(told)


def test_a_met_need_is_not_explained_away() -> None:
    told = drawer(row_of("s", need()))
    assert (told.verdict, told.why, told.tried, told.helps) == ("Met", (), (), ())


def test_a_gang_is_told_which_domain_comes_nearest() -> None:
    view = need(reason=TOPOLOGY, group="rack|job")
    view.same_candidates.append(pb.DomainCoverage(domain="r-1", coverage_per_mille=400))
    view.same_candidates.append(pb.DomainCoverage(domain="r-2", coverage_per_mille=750))
    told = drawer(row_of("s", view))
    assert "r-2 already covers 75 % of it." in told.helps
    assert told.title == "atlas: gang job"


def test_preemption_that_was_found_is_told() -> None:
    view = need(reason=STARVED)
    view.preemption.victims_found = 3
    view.preemption.capacity_freed.resources["cpu"] = "24"
    told = drawer(row_of("s", view))
    assert any(
        "3 machines of less important needs" in line and "cpu 24" in line for line in told.tried
    )


def test_a_reason_of_a_later_release_is_shown_as_its_number() -> None:
    view = need(reason=STOCK_OUT)
    view.unmet_reason = pb.UnmetReason.ValueType(777)
    assert row_of("s", view).reason == "777"
    assert drawer(row_of("s", view)).why
