"""Why a need stays unmet: each reason reached by a small story, in the order they are checked."""

import pytest

from bigfleet.decision import ActionKind, Carry, Policy, Reason
from bigfleet.model import CapacityType
from bigfleet.model.facts import ClusterFacts
from worlds import NOW, RACK, A, B, S, decide, label, machine, need, serving

OUT = Carry().with_stock_out(("p", "t4", "z-1", CapacityType.ON_DEMAND), NOW)


def test_a_satisfied_need_has_no_reason() -> None:
    assert decide([machine("m-1")], [need()]).reason() is Reason.NONE


def test_priority_starved_when_what_would_do_is_held_by_others_as_important() -> None:
    held = need(B)
    outcome = decide([serving("m-1", held)], [need(A, group="late"), held])
    assert outcome.reason(0) is Reason.PRIORITY_STARVED


def test_no_matching_supply_when_no_machine_would_do_in_any_state() -> None:
    assert decide([machine("m-1")], [need(cpu=64)]).reason() is Reason.NO_MATCHING_SUPPLY
    picky = need(where=[label("pool", "In", "x")])
    assert decide([machine("m-1")], [picky]).reason() is Reason.NO_MATCHING_SUPPLY
    failed = machine("m-1", S.FAILED)
    assert decide([failed], [need()]).reason() is Reason.NO_MATCHING_SUPPLY


def test_topology_unsatisfiable_when_no_place_is_large_enough() -> None:
    gang = need(cpu=8, unit=4, same=RACK)
    fleet = [machine("m-1", rack="r-1"), machine("m-2", rack="r-2")]
    assert decide(fleet, [gang]).reason() is Reason.TOPOLOGY_UNSATISFIABLE
    assert decide([machine("m-1")], [gang]).reason() is Reason.TOPOLOGY_UNSATISFIABLE


def test_preemption_exhausted_when_all_victims_together_are_not_enough() -> None:
    low, high = need(B, priority=1), need(A, cpu=12, unit=4, priority=1000)
    outcome = decide([serving("m-1", low)], [low, high])
    assert outcome.does == {"m-1": ActionKind.PREEMPT}
    assert outcome.reason(1) is Reason.PREEMPTION_EXHAUSTED


def test_a_need_whose_victims_are_enough_is_starved_only_until_they_have_drained() -> None:
    low, high = need(B, priority=1), need(A, priority=1000)
    assert decide([serving("m-1", low)], [low, high]).reason(1) is Reason.PRIORITY_STARVED


def test_quota_when_a_slot_waits_behind_it() -> None:
    fleet = [machine("m-1", S.SPECULATIVE)]
    outcome = decide(fleet, [need()], Policy(quotas={("p", "r"): 0}))
    assert outcome.reason() is Reason.QUOTA


def test_spend_limit_when_a_slot_waits_behind_it() -> None:
    fleet = [machine("m-1", S.SPECULATIVE)]
    assert decide(fleet, [need()], Policy(spend_limit_micro=1)).reason() is Reason.SPEND_LIMIT


def test_stock_out_when_all_that_would_do_is_out_of_stock() -> None:
    fleet = [machine("m-1", S.SPECULATIVE)]
    assert decide(fleet, [need()], carry=OUT).reason() is Reason.STOCK_OUT


def test_bootstrap_error_when_the_cluster_is_blocked() -> None:
    blocked = {A: ClusterFacts(blocked=True)}
    assert decide([machine("m-1")], [need()], facts=blocked).reason() is Reason.BOOTSTRAP_ERROR


def test_paused_when_nothing_else_holds_it_back() -> None:
    assert decide([], [need()], Policy(paused=True)).reason() is Reason.PAUSED


@pytest.mark.parametrize(
    ("policy", "carry", "blocked", "reason"),
    [
        (
            Policy(quotas={("p", "r"): 0}, spend_limit_micro=0, paused=True),
            OUT,
            True,
            "BOOTSTRAP_ERROR",
        ),
        (Policy(quotas={("p", "r"): 0}, spend_limit_micro=0, paused=True), Carry(), False, "QUOTA"),
        (Policy(spend_limit_micro=0, paused=True), Carry(), False, "SPEND_LIMIT"),
        (Policy(quotas={("p", "r"): 0}, paused=True), OUT, False, "STOCK_OUT"),
        (Policy(paused=True), Carry(), False, "NONE"),
    ],
)
def test_the_first_reason_that_fits_is_told(
    policy: Policy, carry: Carry, blocked: bool, reason: str
) -> None:
    fleet = [machine("m-1", S.SPECULATIVE)]
    facts = {A: ClusterFacts(blocked=blocked)}
    assert decide(fleet, [need()], policy, facts, carry).reason().name == reason


def test_reserved_idle_machines_and_other_needs_slots_do_not_count_as_waiting() -> None:
    first, second = need(A, priority=200), need(B, priority=100)
    outcome = decide([machine("m-1", S.SPECULATIVE)], [first, second])
    assert outcome.reason(1) is Reason.PRIORITY_STARVED


def test_matching_supply_is_counted_by_state() -> None:
    low = need(B, group="x")
    fleet = [
        serving("m-1", low), machine("m-2", S.DELETING), machine("m-3", S.FAILED),
        machine("m-4", cpu=2),
    ]  # fmt: skip
    outcome = decide(fleet, [low, need(A, priority=1)])
    counts = outcome.plan.verdicts.matching[outcome.row(1)]
    assert {S(s).title: int(n) for s, n in enumerate(counts) if n} == {
        "Configured": 1, "Deleting": 1, "Failed": 1,
    }  # fmt: skip


def test_one_slot_out_of_stock_does_not_explain_a_fleet_that_is_full() -> None:
    holder = need(B, cpu=8, unit=4, priority=200)
    fleet = [serving("m-1", holder), serving("m-2", holder), machine("m-3", S.SPECULATIVE)]
    asked = need(cpu=40, unit=4)
    assert decide(fleet, [asked, holder], carry=OUT).reason(0) is Reason.PRIORITY_STARVED


def test_what_is_on_its_way_is_not_short_any_more() -> None:
    holder = need(B, cpu=4, priority=1)
    outcome = decide([serving("m-1", holder)], [need(), holder])
    assert outcome.lacks() == {"cpu": 4000}
    assert outcome.plan.short(outcome.row(0)) == {}
    assert outcome.plan.short(outcome.row(1)) == {"cpu": 4000}
