"""What counts as supply: bound machines and own commitments, and what stops counting."""

from bigfleet.decision import ActionKind, Policy
from bigfleet.decision.policy import SECOND
from worlds import NOW, A, B, S, after, decide, machine, need, replace, serving, shard

K = ActionKind


def test_bound_and_created_machines_count_and_nothing_else_is_acquired() -> None:
    row = need(cpu=12, unit=4)
    fleet = [
        serving("m-1", row),
        machine("m-2", S.CONFIGURING, serves=row),
        machine("m-3", S.CREATING, serves=row),
        machine("m-4"),
    ]
    outcome = decide(fleet, [row])
    assert outcome.serves() == {"m-1", "m-2", "m-3"}
    assert outcome.does == {}


def test_failed_draining_and_deleting_machines_count_for_no_need() -> None:
    row = need()
    fleet = [
        machine("m-1", S.FAILED, serves=row),
        machine("m-2", S.DRAINING, serves=row),
        machine("m-3", S.DELETING),
        machine("m-4"),
    ]
    outcome = decide(fleet, [row])
    assert outcome.serves() == {"m-4"}
    assert outcome.does == {"m-4": K.BOOTSTRAP}


def test_a_machine_created_for_another_cluster_does_not_count() -> None:
    mine, theirs = need(A), need(B)
    fleet = [machine("m-1", S.CREATING, serves=theirs), machine("m-2")]
    outcome = decide(fleet, [mine, theirs])
    assert outcome.serves(0) == {"m-2"}
    assert outcome.serves(1) == {"m-1"}


def test_an_excluded_machine_is_neither_counted_nor_taken_nor_reclaimed() -> None:
    row = need(cpu=8, unit=4)
    fleet = [
        serving("m-1", row, excluded=True),
        machine("m-2", excluded=True, idle_for=10_000),
        serving("m-3", need(A, group="gone"), excluded=True),
    ]
    outcome = decide(fleet, [row])
    assert outcome.does == {}
    assert outcome.lacks() == {"cpu": 8000}


def test_overhead_of_the_cluster_is_subtracted_from_every_machine() -> None:
    from bigfleet.model.facts import ClusterFacts

    row = need(cpu=4, unit=1)
    facts = {A: ClusterFacts(overhead={"cpu": 500})}
    fleet = [machine("m-1"), machine("m-2")]
    assert decide(fleet, [row]).serves() == {"m-1"}
    assert decide(fleet, [row], facts=facts).serves() == {"m-1", "m-2"}


def test_a_uniform_row_counts_whole_units_only() -> None:
    whole = need(cpu=6, unit=3)
    assert decide([machine("m-1"), machine("m-2")], [whole]).serves() == {"m-1", "m-2"}
    ragged = replace(whole, aggregate={"cpu": 7000})
    assert decide([machine("m-1"), machine("m-2"), machine("m-3")], [ragged]).serves() == {
        "m-1", "m-2",
    }  # fmt: skip


# -- reserved --------------------------------------------------------------------------------


def test_a_reserved_idle_machine_goes_to_its_need_before_cheaper_ones() -> None:
    row = need()
    fleet = [machine("m-1", price=0.1), machine("m-2", serves=row, price=5.0)]
    assert decide(fleet, [row]).serves() == {"m-2"}


def test_only_a_need_of_higher_priority_may_take_a_reserved_machine_away() -> None:
    owner = need(A, priority=100)
    fleet = [machine("m-1", serves=owner)]
    assert decide(fleet, [owner, need(B, priority=50)]).serves(0) == {"m-1"}
    assert decide(fleet, [owner, need(B, priority=200)]).serves(1) == {"m-1"}
    earlier = replace(need(B, priority=100), arrival_ns=owner.arrival_ns - 1)
    assert decide(fleet, [owner, earlier]).does == {"m-1": K.BOOTSTRAP}
    assert decide(fleet, [owner, earlier]).satisfied(0)


def test_a_reserved_machine_stays_where_the_higher_need_finds_another() -> None:
    owner = need(A, priority=100)
    fleet = [machine("m-1", serves=owner), machine("m-2", price=0.1)]
    outcome = decide(fleet, [owner, need(B, priority=200)])
    assert (outcome.serves(0), outcome.serves(1)) == ({"m-1"}, {"m-2"})


def test_a_machine_made_for_a_row_counts_though_it_is_idle() -> None:
    row = need()
    fleet = [serving("m-1", row, leaving=True), machine("m-2", serves=row)]
    outcome = decide(fleet, [row])
    assert outcome.does == {"m-2": K.BOOTSTRAP}
    assert outcome.serves() == {"m-2"}


def test_a_reserved_machine_waits_for_an_unmet_need_that_came_before() -> None:
    owner = replace(need(A, cpu=8, priority=200), min_unit={"cpu": 8000})
    lower = need(B, priority=100)
    # Too small for its owner's pods: reserved all the same while the owner is unmet.
    outcome = decide([machine("m-1", serves=owner)], [owner, lower])
    assert outcome.does == {}
    assert not outcome.satisfied(1)


# -- leaving ---------------------------------------------------------------------------------


def test_a_leaving_machine_counts_for_no_need_but_may_be_kept_by_its_old_need() -> None:
    row = need()
    outcome = decide([serving("m-1", row, leaving=True)], [row])
    assert outcome.does == {"m-1": K.KEEP}
    assert outcome.satisfied()


def test_a_leaving_machine_is_not_kept_when_others_serve() -> None:
    row = need()
    outcome = decide([serving("m-1", row, leaving=True), serving("m-2", row)], [row])
    assert outcome.does == {}
    assert outcome.serves() == {"m-2"}


def test_a_machine_drained_on_request_is_not_kept_and_its_need_gets_another() -> None:
    row = need()
    asked = serving("m-1", row, final=True)
    assert decide([asked], [row]).does == {}
    outcome = decide([asked, machine("m-2")], [row])
    assert outcome.does == {"m-2": K.BOOTSTRAP}
    assert outcome.serves() == {"m-2"}


def test_a_machine_leaving_for_a_need_that_still_waits_is_not_kept() -> None:
    old, new = need(A, priority=10), need(B, priority=1000)
    outcome = decide([serving("m-1", old, leaves_for=new)], [old, new])
    assert outcome.does == {}
    assert not outcome.satisfied(0)


def test_rows_of_one_shape_do_not_pass_what_is_on_its_way_to_one_another() -> None:
    low, high, higher = need(B, priority=0), need(A, priority=100), need(A, priority=1000)
    also = need(A, priority=0)
    fleet = [serving("m-1", low, leaves_for=high)]
    assert decide(fleet, [low, high, also]).does == {}
    assert decide(fleet, [low, high, higher, also]).does == {}


def test_what_its_own_need_no_longer_wants_is_on_its_way_to_another_of_its_shape() -> None:
    low, high, also = need(B, priority=0), need(A, priority=100), need(A, priority=50)
    fleet = [serving("m-1", low, leaves_for=high), serving("m-2", high)]
    assert decide(fleet, [low, high, also]).does == {}


def test_a_machine_leaving_for_a_need_that_is_met_meanwhile_is_kept() -> None:
    old, new = need(A, priority=10), need(B, priority=1000)
    fleet = [serving("m-1", old, leaves_for=new), serving("m-2", new)]
    assert decide(fleet, [old, new]).does == {"m-1": K.KEEP}


# -- announced ends and phantoms -------------------------------------------------------------


def test_a_machine_with_an_announced_end_is_replaced_and_drained_afterwards() -> None:
    row = need()
    ending = serving("m-1", row, ends_in=600)
    first = decide([ending, machine("m-2")], [row])
    assert first.does == {"m-2": K.BOOTSTRAP}
    assert decide([ending, machine("m-2", S.CONFIGURING, serves=row)], [row]).does == {}
    assert decide([ending, serving("m-2", row)], [row]).does == {"m-1": K.RECLAIM}


def test_a_machine_whose_end_is_near_is_drained_with_or_without_replacement() -> None:
    row = need()
    assert decide([serving("m-1", row, ends_in=61)], [row]).does == {}
    near = decide([serving("m-1", row, ends_in=60)], [row])
    assert near.does == {"m-1": K.RECLAIM}
    assert near.grace("m-1") == 600


def test_an_idle_machine_with_an_announced_end_is_never_taken() -> None:
    assert decide([machine("m-1", ends_in=3600)], [need()]).does == {}


def test_a_phantom_stops_counting_and_is_reclaimed_after_its_replacement_serves() -> None:
    row = need(cpu=16, unit=4)
    ready = [serving(f"m-{i}", row) for i in range(3)]
    phantom = serving("m-9", row, not_ready_for=901)
    first = decide([*ready, phantom, machine("m-4")], [row])
    assert first.does == {"m-4": K.BOOTSTRAP}
    assert decide([*ready, phantom, serving("m-4", row)], [row]).does == {"m-9": K.RECLAIM}


def test_a_node_is_no_phantom_before_the_readiness_deadline_has_passed() -> None:
    row = need()
    fleet = [serving("m-1", row, not_ready_for=900), machine("m-2")]
    assert decide(fleet, [row]).does == {}


def test_a_cluster_whose_nodes_all_look_dead_loses_none_that_is_its_outage() -> None:
    row = need(cpu=36, unit=4)
    fleet = [serving(f"m-{i}", row, not_ready_for=1000) for i in range(3)]
    fleet += [serving(f"m-{i}", row) for i in range(3, 9)]
    assert decide([*fleet, machine("m-x")], [row]).does == {}
    # Exactly 30 %, or fewer than three, is not an outage.
    tenth = [*fleet, serving("m-9", row)]
    assert not decide(tenth, [replace(row, aggregate={"cpu": 40_000})]).satisfied()
    two = [replace(fleet[0], not_ready_since_ns=0), *fleet[1:]]
    assert decide([*two, machine("m-x")], [row]).does == {"m-x": K.BOOTSTRAP}


def test_the_outage_rule_counts_the_configured_machines_of_that_cluster_alone() -> None:
    row, other = need(A, cpu=12, unit=4), need(B, cpu=80, unit=4)
    fleet = [serving(f"m-{i}", row, not_ready_for=1000) for i in range(3)]
    fleet += [serving(f"n-{i}", other) for i in range(20)]
    assert decide([*fleet, machine("m-x")], [row, other]).does == {}


# -- memory ----------------------------------------------------------------------------------


def test_an_unclaimed_machine_is_reclaimed_after_the_hold_and_not_before() -> None:
    row, gone = need(), need(group="gone")
    fleet = [serving("m-1", row), serving("m-2", gone)]
    both = shard(Policy(reclaim_hold=30 * SECOND))
    assert after(both, fleet, [row], seconds=0).does == {}
    assert after(both, fleet, [row], seconds=29).does == {}
    assert after(both, fleet, [row], seconds=30).does == {"m-2": K.RECLAIM}


def test_a_dip_shorter_than_the_hold_takes_nothing() -> None:
    row, dipping = need(), need(group="dips")
    fleet = [serving("m-1", row), serving("m-2", dipping)]
    both = shard(Policy(reclaim_hold=30 * SECOND))
    after(both, fleet, [row], seconds=0)
    assert after(both, fleet, [row, dipping], seconds=20).does == {}
    assert after(both, fleet, [row], seconds=40).does == {}
    assert after(both, fleet, [row], seconds=70).does == {"m-2": K.RECLAIM}


def test_a_needs_age_is_kept_while_it_stays_unmet() -> None:
    row, both = need(), shard()
    first = after(both, [], [row], seconds=0)
    later = after(both, [], [row], seconds=50)
    assert first.plan.verdicts.unmet_since[0] == later.plan.verdicts.unmet_since[0] == NOW
    assert after(both, [serving("m-1", row)], [row], seconds=60).plan.verdicts.unmet_since[0] == 0
