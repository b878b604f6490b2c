"""Preempt: excess first, then strictly lower needs, by score, and never more than is missing."""

from bigfleet.decision import ActionKind, Carry, Policy, Reason, VictimWeights
from bigfleet.model import CapacityType
from bigfleet.model.facts import ClusterFacts
from worlds import A, B, S, decide, label, machine, need, replace, serving

K = ActionKind


def test_a_higher_need_takes_from_a_lower_one_and_the_machine_is_meant_for_it() -> None:
    low, high = need(B, priority=10), need(A, priority=1000)
    outcome = decide([serving("m-1", low)], [low, high])
    assert outcome.does == {"m-1": K.PREEMPT}
    meant = outcome.meant_for("m-1")
    assert meant is not None
    assert (meant.cluster, meant.priority) == (A, 1000)
    assert not outcome.satisfied(0)
    assert not outcome.satisfied(1)


def test_equal_priority_takes_nothing() -> None:
    low, high = need(B, priority=10), need(A, priority=10, interruption=9)
    assert decide([serving("m-1", low)], [low, high]).does == {}


def test_the_grace_follows_the_gap() -> None:
    for gap, seconds in ((50, 600), (200_000, 120), (600_000, 30), (1_000_000, 10)):
        low, high = need(B, priority=0), need(A, priority=gap)
        assert decide([serving("m-1", low)], [low, high]).grace("m-1") == seconds


def test_a_victim_in_the_own_cluster_is_not_drained_its_claim_moves() -> None:
    low, high = need(A, priority=10, group="low"), need(A, priority=1000, group="high")
    outcome = decide([serving("m-1", low)], [low, high])
    assert outcome.does == {}
    assert outcome.serves(1) == {"m-1"}
    stamp = outcome.stamp("m-1")
    assert stamp is not None
    assert stamp.group == "high"


def test_what_was_taken_goes_back_where_a_machine_that_moves_is_enough() -> None:
    low = need(A, cpu=8, unit=1, priority=10, group="low")
    high = need(A, cpu=6, unit=1, priority=1000, group="high")
    small = [machine(f"m-{i}", cpu=2, price=price) for i, price in enumerate((1.0, 3.0))]
    outcome = decide([serving("m-large", low, cpu=8), *small], [low, high])
    # Both are free and not enough. The large one then serves alone, and at once.
    assert outcome.does == {}
    assert outcome.serves(1) == {"m-large"}
    assert outcome.satisfied(1)


def test_of_what_was_taken_only_the_costliest_goes_back_where_the_rest_is_needed() -> None:
    low = need(A, cpu=4, unit=1, priority=10, group="low")
    high = need(A, cpu=6, unit=1, priority=1000, group="high")
    small = [machine(f"m-{i}", cpu=2, price=price) for i, price in enumerate((3.0, 1.0))]
    outcome = decide([serving("m-large", low, cpu=4), *small], [low, high])
    assert outcome.does == {"m-1": K.BOOTSTRAP}
    assert outcome.serves(1) == {"m-large", "m-1"}
    assert outcome.stamp("m-0") is None


def test_excess_is_taken_before_any_victim_with_full_grace() -> None:
    low, high = need(B, priority=10), need(A, priority=1_000_000)
    fleet = [serving("m-1", low), serving("m-2", need(B, group="gone"))]
    outcome = decide(fleet, [low, high])
    assert outcome.does == {"m-2": K.PREEMPT}
    assert outcome.grace("m-2") == 600


def test_the_cheapest_excess_for_the_preemptor_goes_first() -> None:
    gone, high = need(B, group="gone"), need(A, priority=1000)
    fleet = [serving("m-1", gone, price=3.0), serving("m-2", gone, price=2.0)]
    assert decide(fleet, [high]).does == {"m-1": K.RECLAIM, "m-2": K.PREEMPT}


def test_excess_of_different_size_is_compared_by_cost_per_useful_unit() -> None:
    gone = need(B, group="gone")
    small = [serving(f"m-{i}", gone, cpu=4, price=1.5) for i in range(2)]
    fleet = [*small, serving("m-large", gone, cpu=8, price=2.0)]
    held = Policy(reclaim_hold=10**12)
    assert decide(fleet, [need(cpu=8, unit=1)], held).does == {"m-large": K.PREEMPT}
    assert decide(fleet, [need(cpu=4, unit=1)], held).does == {"m-0": K.PREEMPT}


def test_excess_is_taken_within_the_clusters_reclaim_budget() -> None:
    gone, high = need(B, group="gone"), need(A, cpu=8, unit=4, priority=1000)
    fleet = [serving(f"m-{i}", gone) for i in range(3)]
    policy = Policy(reclaim_hold=10**18, reclaim_budget={B: 1})
    assert decide(fleet, [high], policy).does == {"m-0": K.PREEMPT}
    assert decide(fleet, [high], replace(policy, reclaim_budget={})).does == {}
    assert len(decide(fleet, [high], replace(policy, reclaim_budget=None)).does) == 2


def test_what_one_need_takes_of_the_budget_is_gone_for_the_next_and_no_more() -> None:
    gone = need(B, group="gone")
    first, second = need(A, priority=2000, group="1"), need(A, priority=1000, group="2")
    fleet = [serving(f"m-{i}", gone) for i in range(3)]
    for budget, taken in ((0, 0), (1, 1), (2, 2), (3, 2)):
        policy = Policy(reclaim_hold=10**18, reclaim_budget={B: budget})
        assert len(decide(fleet, [first, second], policy).does) == taken


def test_what_is_taken_from_a_lower_need_draws_on_no_budget() -> None:
    low, gone = need(B, priority=1), need(B, group="gone")
    fleet = [serving("m-low", low, labels={"pool": "x"}), serving("m-gone", gone)]
    first = need(priority=1_000, where=[label("pool", "In", "x")])
    second = need(priority=900, where=[label("pool", "NotIn", "x")])
    policy = Policy(reclaim_hold=10**18, reclaim_budget={B: 1})
    outcome = decide(fleet, [first, second, low], policy)
    assert outcome.does == {"m-low": K.PREEMPT, "m-gone": K.PREEMPT}


def test_excess_marked_do_not_disrupt_or_of_a_silent_cluster_is_left_alone() -> None:
    gone, high = need(B, group="gone"), need(A, priority=1000)
    kept = serving("m-1", gone, do_not_disrupt=True)
    assert decide([kept], [high]).does == {}
    silent = {B: ClusterFacts(reported=False)}
    low = replace(gone, profile=replace(gone.profile, priority=2000))
    assert decide([serving("m-1", low)], [high], facts=silent).does == {}


def test_before_a_cluster_has_reported_its_stamps_speak_for_it() -> None:
    low, high = need(B, priority=10), need(A, priority=1000)
    silent = {B: ClusterFacts(reported=False)}
    outcome = decide([serving("m-1", low)], [high], facts=silent)
    assert outcome.does == {"m-1": K.PREEMPT}
    assert outcome.grace("m-1") == 600


def test_no_more_victims_are_taken_than_needed_and_redundant_ones_are_spared() -> None:
    low, high = need(B, cpu=24, unit=1, priority=10), need(A, cpu=16, unit=1, priority=1000)
    fleet = [serving("m-1", low, cpu=4), serving("m-2", low, cpu=4), serving("m-3", low, cpu=16)]
    outcome = decide(fleet, [low, high])
    assert outcome.does == {"m-3": K.PREEMPT}
    assert len(decide(fleet[:2], [low, replace(high, aggregate={"cpu": 4000})]).does) == 1


def test_what_is_on_its_way_is_subtracted_first() -> None:
    low, high = need(B, cpu=8, unit=4, priority=10), need(A, priority=1000)
    fleet = [serving("m-1", low), serving("m-2", low, leaves_for=high)]
    assert decide(fleet, [low, high]).does == {}
    draining = machine("m-2", S.DRAINING, serves=low, leaves_for=high)
    assert decide([fleet[0], draining], [low, high]).does == {}


def test_machines_that_do_not_cover_the_unit_or_match_are_no_victims() -> None:
    low, high = need(B, cpu=2, priority=10), need(A, cpu=4, priority=1000)
    assert decide([serving("m-1", low, cpu=2)], [low, high]).does == {}


def test_pinned_demand_does_not_preempt_an_interruptible_machine() -> None:
    low, high = need(B, priority=10), need(A, priority=1000, interruption=27)
    assert decide([serving("m-1", low, risk=0.1)], [low, high]).does == {}


def test_the_greatest_priority_gap_makes_the_best_victim() -> None:
    lower, low = need(B, priority=5, group="x"), need(B, priority=10, group="y")
    fleet = [serving("m-1", low), serving("m-2", lower)]
    assert decide(fleet, [lower, low, need(A, priority=1000)]).does == {"m-2": K.PREEMPT}


def test_cheaper_penalties_and_faster_drains_make_better_victims() -> None:
    high = need(A, priority=1000)
    for worth in ({"interruption": 9}, {"reclamation": 9}):
        expensive, cheap = need(B, group="x", **worth), need(B, group="y")  # type: ignore[arg-type]
        fleet = [serving("m-1", expensive), serving("m-2", cheap)]
        assert decide(fleet, [expensive, cheap, high]).does == {"m-2": K.PREEMPT}
    low = need(B, cpu=8, unit=4)
    fleet = [serving("m-1", low), serving("m-2", low, zone="z-2")]
    quick = Carry().with_drain(("p", "t4", "z-2", CapacityType.ON_DEMAND), 2.0)
    assert decide(fleet, [low, high], carry=quick).does == {"m-2": K.PREEMPT}
    slow = Carry().with_drain(("p", "t4", "z-1", CapacityType.ON_DEMAND), 9000.0)
    assert decide(fleet, [low, high], carry=slow).does == {"m-2": K.PREEMPT}
    at_once = Carry().with_drain(("p", "t4", "z-2", CapacityType.ON_DEMAND), 0.0)
    assert decide(fleet, [low, high], carry=at_once).does == {"m-2": K.PREEMPT}


def test_weights_decide_what_matters_most() -> None:
    high = need(A, priority=1000)
    near, far = need(B, priority=900, group="x"), need(B, priority=5, group="y", interruption=20)
    fleet = [serving("m-1", near), serving("m-2", far)]
    assert decide(fleet, [near, far, high]).does == {"m-2": K.PREEMPT}
    money = Policy(weights=VictimWeights(priority=0.0, interruption=1.0), reclaim_hold=0)
    assert decide(fleet, [near, far, high], money).does == {"m-1": K.PREEMPT}


def test_capacity_freed_and_victims_found_are_told() -> None:
    low, high = need(B, priority=10), need(A, priority=1000)
    plan = decide([serving("m-1", low)], [low, high]).plan
    assert plan.verdicts.victims.tolist() == [1, 0]
    assert plan.freed(0) == {"cpu": 4000}


def test_two_machines_on_their_way_are_both_counted() -> None:
    high = need(A, cpu=8, unit=4, priority=1_000)
    lows = [need(B, priority=0, group=f"v-{i}") for i in range(3)]
    fleet = [
        *(serving(f"m-{i}", lows[i], leaves_for=high) for i in range(2)),
        serving("m-2", lows[2]),
    ]
    assert decide(fleet, [high, *lows]).does == {}


def test_what_is_on_its_way_and_what_is_preempted_now_are_enough_together() -> None:
    high = need(A, cpu=8, unit=4, priority=1_000)
    lows = [need(B, priority=0, group=f"v-{i}") for i in range(2)]
    fleet = [serving("m-0", lows[0], leaves_for=high), serving("m-1", lows[1])]
    outcome = decide(fleet, [high, *lows])
    assert outcome.does == {"m-1": K.PREEMPT}
    assert outcome.reason() is Reason.PRIORITY_STARVED


def test_a_bound_machine_of_no_cluster_is_nobodys_excess() -> None:
    stray = replace(machine("m-1", S.CONFIGURED), cluster="")
    outcome = decide([stray], [need(priority=1_000)])
    assert outcome.does == {}
    assert outcome.reason() is Reason.PRIORITY_STARVED
