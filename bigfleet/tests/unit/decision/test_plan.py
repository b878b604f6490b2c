"""What a plan tells: actions as values with a reason in words, counts, digest, sequence numbers."""

import pytest

from bigfleet.decision import ActionKind, Counters, Engine, Policy, engine
from bigfleet.decision.policy import VOLUNTARY_GRACE_SECONDS
from bigfleet.inventory import Inventory
from bigfleet.model.columns import Demand, Symbols
from bigfleet.model.facts import ClusterFacts
from worlds import NOW, RACK, A, B, S, after, decide, label, machine, need, serving, shard

K = ActionKind


def test_every_kind_of_action_says_whom_it_is_for_and_why() -> None:
    low, high = need(B, priority=7), need(A, cpu=12, unit=4, priority=1000)
    kept, gone = need(A, priority=50, group="kept"), need(A, group="gone")
    fleet = [
        machine("m-idle"),
        machine("m-new", S.SPECULATIVE, price=2.5),
        serving("m-low", low),
        serving("m-kept", kept, leaving=True, cpu=2),
        serving("m-gone", gone, cpu=1),
        machine("m-old", cpu=1, idle_for=10_000, price=0.25),
    ]
    rows = [low, high, kept]
    said = {
        a.machine: a
        for a in decide(fleet, [*rows[:2], need(A, cpu=2, priority=50, group="kept")]).plan
    }
    assert {name: a.kind for name, a in said.items()} == {
        "m-idle": K.BOOTSTRAP, "m-new": K.PROVISION, "m-low": K.PREEMPT, "m-kept": K.KEEP,
        "m-gone": K.RECLAIM, "m-old": K.DELETE,
    }  # fmt: skip
    assert {name: a.cluster for name, a in said.items()} == {
        "m-idle": A, "m-new": A, "m-low": B, "m-kept": A, "m-gone": A, "m-old": "",
    }  # fmt: skip
    assert {name: a.need for name, a in said.items()} == {
        "m-idle": 1, "m-new": 1, "m-low": 1, "m-kept": 2, "m-gone": -1, "m-old": -1,
    }  # fmt: skip
    assert {name: a.reason for name, a in said.items()} == {
        "m-idle": "cheapest idle machine for priority 1000, $1.000/h",
        "m-new": "no idle machine left; cheapest to create for priority 1000, $2.500/h",
        "m-low": "priority 1000 takes it",
        "m-kept": "its need is back (priority 50)",
        "m-gone": "no need of its cluster claims it",
        "m-old": "idle beyond its hold at $0.250/h",
    }
    assert said["m-gone"].grace_seconds == VOLUNTARY_GRACE_SECONDS


def test_a_drain_for_an_announced_end_says_so() -> None:
    row = need(A, cpu=4)
    (action,) = decide([serving("m-1", row, ends_in=30)], [row]).plan
    assert (action.kind, action.reason) == (K.RECLAIM, "its provider has announced its end")


def test_the_reclaim_of_a_phantom_says_so_and_that_of_other_excess_does_not() -> None:
    gone = need(B, group="gone")
    phantom, excess = serving("m-1", gone, not_ready_for=901), serving("m-2", gone, not_ready_for=9)
    assert {a.machine: a.reason for a in decide([phantom, excess], []).plan} == {
        "m-1": "its cluster has not seen it Ready for too long",
        "m-2": "no need of its cluster claims it",
    }


def test_the_reclaim_of_a_gang_that_moved_says_so() -> None:
    row = need(cpu=8, unit=4, group="g", same=RACK)
    home = serving("m-home", row, rack="r-9")
    served = [serving(f"m-{i}", row, rack="r-1", sequence=9) for i in range(2)]
    (action,) = decide([home, *served], [row]).plan
    assert (action.machine, action.reason) == ("m-home", "its gang has moved to r-1")


def test_actions_come_by_kind_and_row_takes_first_releases_last() -> None:
    low, high = need(B, priority=1, group="l"), need(A, priority=9)
    fleet = [
        machine("m-5"), machine("m-2"), serving("m-4", need(A, group="gone"), cpu=1),
        machine("m-1", cpu=1, idle_for=9999),
    ]  # fmt: skip
    plan = decide(fleet, [low, high]).plan
    assert [(a.kind, a.machine) for a in plan] == [
        (K.BOOTSTRAP, "m-2"), (K.BOOTSTRAP, "m-5"), (K.RECLAIM, "m-4"), (K.DELETE, "m-1"),
    ]  # fmt: skip
    assert plan.counts() == {"Bootstrap": 2, "Reclaim": 1, "Delete": 1}


def test_the_digest_says_what_is_done_and_not_in_which_order() -> None:
    fleet, row = [machine("m-1"), machine("m-2", price=2.0)], need()
    plan = decide(fleet, [row]).plan
    assert plan.digest() == decide(fleet[::-1], [row]).plan.digest()
    assert plan.digest() != decide(fleet[1:], [row]).plan.digest()
    assert len(plan.digest()) == 64


def test_stamps_are_numbered_by_row_and_machine_and_never_twice() -> None:
    high, low = need(A, priority=9), need(B, priority=1, cpu=8, unit=4)
    both = shard()
    first = after(both, [machine("m-3"), machine("m-1"), machine("m-2")], [low, high])
    numbers = {
        name: stamp.sequence for name in ("m-1", "m-2", "m-3") if (stamp := first.stamp(name))
    }
    assert numbers == {"m-1": NOW, "m-2": NOW + 1, "m-3": NOW + 2}
    second = after(both, [machine("m-9")], [need(A, group="new")])
    stamp = second.stamp("m-9")
    assert stamp is not None
    assert stamp.sequence == NOW + 3


def test_where_nothing_is_given_the_last_number_stays() -> None:
    row, both = need(), shard()
    after(both, [machine("m-1")], [row])
    last = both.carry.last_sequence
    after(both, [serving("m-1", row)], [row], seconds=60)
    assert both.carry.last_sequence == last == NOW


def test_verdicts_count_claims_and_where_they_came_from() -> None:
    row = need(cpu=12, unit=4)
    fleet = [serving("m-1", row), machine("m-2"), machine("m-3", S.SPECULATIVE)]
    v = decide(fleet, [row]).plan.verdicts
    assert (v.claimed[0], v.from_idle[0], v.from_speculative[0]) == (3, 1, 1)
    assert v.satisfied[0]
    assert v.need.tolist() == [0]


def test_a_clock_times_the_phases_and_changes_nothing() -> None:
    ticks = iter(range(100))
    symbols = Symbols()
    inventory = Inventory(symbols)
    inventory.load([machine("m-1")])
    demand = Demand.of([need()], {}, symbols)
    timed = Engine(clock=lambda: float(next(ticks)))
    plan = timed.decide(inventory.snapshot(), demand, Policy(), now=NOW)
    assert dict(plan.seconds) == {"normalise": 1.0, "phase1": 1.0, "phase2": 1.0, "phase3": 1.0}
    assert plan.digest() == Engine().decide(inventory.snapshot(), demand, now=NOW).digest()


def test_displacements_and_exhausted_retries_stay_zero() -> None:
    plan = decide([machine("m-1")], [need()], Policy(workers=4)).plan
    assert (plan.counters.displacements, plan.counters.exhausted_retries) == (0, 0)
    assert Counters() == Counters(0, 0, 0, 0, 0)


def test_workers_propose_for_rows_that_depend_on_free_machines_alone() -> None:
    fleet = [machine(f"m-{i}") for i in range(4)]
    rows = [need(group=f"g-{i}") for i in range(3)]
    counters = decide(fleet, rows, Policy(workers=2)).plan.counters
    # Proposed on one view, all three wanted the same machine: two were computed again.
    assert (counters.proposals, counters.conflicts, counters.recomputed) == (3, 2, 2)
    waiting = [*rows, need(group="g-9", same=RACK)]
    assert decide(fleet, waiting, Policy(workers=2)).plan.counters.proposals == 3


def test_a_fleet_without_machines_has_a_plan_with_nothing_in_it() -> None:
    outcome = decide([], [need()])
    assert outcome.does == {}
    assert outcome.lacks() == {"cpu": 4000}


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_need_of_and_domain_are_told_for_every_row(workers: int) -> None:
    rows = [need(B, priority=1), need(A, priority=2)]
    plan = decide([], rows, Policy(workers=workers)).plan
    assert [plan.need_of(row) for row in range(2)] == [1, 0]
    assert [plan.domain(row) for row in range(2)] == ["", ""]
    assert plan.need_of(-1) == -1


def test_a_single_worker_proposes_nothing() -> None:
    assert decide([machine("m-1")], [need()], Policy(workers=1)).plan.counters == Counters()


def test_proposals_for_different_machines_hold_side_by_side() -> None:
    fleet = [machine(f"m-{i}", labels={"pool": f"p-{i % 3}"}) for i in range(6)]
    rows = [need(cpu=8, unit=4, where=[label("pool", "In", f"p-{i}")]) for i in range(3)]
    outcome = decide(fleet, rows, Policy(workers=2))
    counters = outcome.plan.counters
    assert (counters.proposals, counters.conflicts, counters.recomputed) == (3, 0, 0)
    assert [outcome.serves(i) for i in range(3)] == [{f"m-{i}", f"m-{i + 3}"} for i in range(3)]


def test_no_need_looks_for_victims_while_everybody_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "victims_of", lambda *_: pytest.fail("looked for victims"))
    low = need(B, priority=1)
    blocked = {A: ClusterFacts(blocked=True)}
    fleet = [machine("m-1"), serving("m-low", low)]
    assert decide(fleet, [need(priority=1_000), low]).satisfied()
    assert not decide(fleet, [need(priority=1_000), low], facts=blocked).satisfied()


def test_a_proposal_that_holds_draws_on_a_quota_once() -> None:
    fleet = [machine(f"m-{i}", S.SPECULATIVE, labels={"pool": f"p-{i}"}) for i in range(2)]
    rows = [need(where=[label("pool", "In", f"p-{i}")]) for i in range(2)]
    outcome = decide(fleet, rows, Policy(workers=2, quotas={("p", "r"): 2}))
    assert outcome.does == {"m-0": K.PROVISION, "m-1": K.PROVISION}
