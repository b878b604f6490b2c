"""Gangs: one place, whole or untouched, and a steady choice of the place."""

from bigfleet.decision import ActionKind, Carry, Policy, Reason
from bigfleet.model import LABEL_HOSTNAME, CapacityType, Profile
from gangs import gang, rack
from worlds import (
    NOW,
    RACK,
    ZONE,
    A,
    B,
    S,
    after,
    decide,
    label,
    machine,
    need,
    replace,
    serving,
    shard,
)

K = ActionKind


def test_a_gang_takes_all_it_lacks_in_one_place() -> None:
    outcome = decide([*rack("r-1", 1), *rack("r-2", 2)], [gang()])
    assert outcome.serves() == {"m-r-2-0", "m-r-2-1"}
    assert outcome.domain() == "r-2"


def test_a_gang_that_finds_no_place_large_enough_takes_nothing() -> None:
    outcome = decide([*rack("r-1", 1), *rack("r-2", 1)], [gang()])
    assert outcome.does == {}
    assert outcome.reason() is Reason.TOPOLOGY_UNSATISFIABLE


def test_among_covering_places_the_smallest_is_chosen() -> None:
    outcome = decide([*rack("r-1", 4), *rack("r-2", 3), *rack("r-3", 5)], [gang()])
    assert outcome.domain() == "r-2"


def test_among_places_too_small_the_largest_is_named() -> None:
    outcome = decide([*rack("r-1", 1), *rack("r-2", 3), *rack("r-3", 2)], [gang(cpu=16)])
    assert outcome.domain() == "r-2"
    v = outcome.plan.verdicts
    names = outcome.plan.domain_names[int(v.domain_key[0])]
    told = [(names[d], int(m)) for d, m in zip(v.best[0], v.best_mille[0], strict=True) if d >= 0]
    assert told == [("r-2", 750), ("r-3", 500), ("r-1", 250)]


def test_more_machines_and_then_the_smaller_name_break_ties() -> None:
    one_large = machine("m-a", cpu=8, rack="r-1")
    three = [*rack("r-2", 2), one_large, *rack("r-3", 1), *rack("r-4", 1)]
    assert decide([*rack("r-3", 2), *rack("r-2", 2)], [gang()]).domain() == "r-2"
    # One machine that holds the whole gang makes the gang a plain need; a wish for more does not.
    assert decide(three, [gang(cpu=8)]).domain() == ""


def test_a_gang_stays_where_its_machines_are() -> None:
    row = gang()
    home = serving("m-home", row, rack="r-9")
    outcome = decide([home, *rack("r-1", 2), *rack("r-9", 3)], [row])
    assert outcome.domain() == "r-9"
    assert outcome.serves() == {"m-home", "m-r-9-0"}


def test_a_gang_that_cannot_be_completed_at_home_moves_and_keeps_home_meanwhile() -> None:
    row = gang()
    home = serving("m-home", row, rack="r-9")
    outcome = decide([home, *rack("r-1", 2)], [row])
    assert outcome.domain() == "r-1"
    assert outcome.does == {"m-r-1-0": K.BOOTSTRAP, "m-r-1-1": K.BOOTSTRAP}
    assert outcome.serves() == {"m-home", "m-r-1-0", "m-r-1-1"}
    served = [serving(f"m-r-1-{i}", row, rack="r-1", sequence=9) for i in range(2)]
    assert decide([home, *served], [row]).does == {"m-home": K.RECLAIM}


def test_what_is_coming_for_a_gang_counts_as_completing_it() -> None:
    row = gang()
    coming = [
        machine("m-1", S.CREATING, serves=row, rack="r-1"),
        machine("m-2", S.DRAINING, serves=need(B, group="old"), leaves_for=row, rack="r-1"),
    ]
    outcome = decide([*coming, *rack("r-1", 2)], [row])
    assert outcome.does == {}


def test_a_second_gang_does_not_count_on_what_the_first_will_take() -> None:
    first, second = gang(group="g-1"), gang(group="g-2")
    outcome = decide([*rack("r-1", 3), *rack("r-2", 2)], [first, second])
    assert {outcome.domain(0), outcome.domain(1)} == {"r-1", "r-2"}
    assert outcome.satisfied(0)
    assert outcome.satisfied(1)


def test_a_gang_counts_only_what_quota_and_stock_allow() -> None:
    made = rack("r-1", 2, S.SPECULATIVE)
    assert (
        decide([*made, *rack("r-2", 3)], [gang()], Policy(quotas={("p", "r"): 3})).domain() == "r-2"
    )
    stock_out = Carry().with_stock_out(("p", "t4", "z-1", CapacityType.ON_DEMAND), NOW)
    cooling = decide(made, [gang()], carry=stock_out)
    assert cooling.does == {}
    assert cooling.reason() is Reason.STOCK_OUT


def test_a_gang_counts_only_what_the_spend_limit_allows() -> None:
    fleet = [*rack("r-1", 2, S.SPECULATIVE), *rack("r-2", 3)]
    assert decide(fleet, [gang()], Policy(spend_limit_micro=5_000_000)).domain() == "r-1"
    assert decide(fleet, [gang()], Policy(spend_limit_micro=4_000_000)).domain() == "r-2"
    uncountable = rack("r-9", 4, S.SPECULATIVE, price=9e12)
    limit = Policy(spend_limit_micro=4_000_000)
    assert decide([*fleet, *uncountable], [gang()], limit).domain() == "r-2"


def test_a_gang_preempts_only_when_that_completes_it() -> None:
    low = need(B, cpu=8, unit=4, priority=1)
    victims = [serving(f"m-{i}", low, rack="r-1") for i in range(2)]
    row = gang(cpu=12, priority=1000)
    assert decide(victims, [row, low]).does == {}
    outcome = decide([*victims, *rack("r-1", 1)], [row, low])
    assert outcome.does == {"m-0": K.PREEMPT, "m-1": K.PREEMPT, "m-r-1-0": K.BOOTSTRAP}


def test_a_place_that_is_free_goes_before_one_that_must_be_emptied() -> None:
    low = need(B, cpu=8, unit=4, priority=1)
    victims = [serving(f"m-{i}", low, rack="r-1") for i in range(2)]
    outcome = decide([*victims, *rack("r-2", 4)], [gang(priority=1000), low])
    assert outcome.domain() == "r-2"


def test_gangs_of_one_machine_each_fold_into_one_plain_need() -> None:
    rows = [gang(cpu=8, group=f"g-{i}") for i in range(3)]
    fleet = [machine(f"m-{i}", cpu=8, rack=f"r-{i}") for i in range(3)]
    outcome = decide(fleet, rows)
    assert len(outcome.plan.verdicts) == 1
    assert len(outcome.does) == 3
    stamps = [outcome.stamp(f"m-{i}") for i in range(3)]
    assert sorted(stamp.group for stamp in stamps if stamp) == ["g-0", "g-1", "g-2"]


def test_gangs_that_fold_are_spread_no_more_than_gangs_that_do_not() -> None:
    rows = [need(cpu=8, unit=4, same=RACK, spread=(ZONE, 1), group=f"g-{i}") for i in range(3)]
    fleet = [machine(f"m-{i}", cpu=8, rack=f"r-{i}", zone="z-1") for i in range(3)]
    expensive = machine("m-far", cpu=8, rack="r-9", zone="z-2", price=9.0)
    assert set(decide([*fleet, expensive], rows).does) == {"m-0", "m-1", "m-2"}


def test_what_a_fold_cannot_place_on_whole_machines_is_served_as_gangs() -> None:
    rows = [gang(cpu=8, group=f"g-{i}") for i in range(2)]
    fleet = [machine("m-whole", cpu=8, rack="r-1"), *rack("r-2", 2)]
    outcome = decide(fleet, rows)
    assert outcome.satisfied(0)
    assert len(outcome.does) == 3


def test_a_gang_that_lives_on_several_machines_is_not_moved_onto_one() -> None:
    row = gang(cpu=8)
    fleet = [serving(f"m-{i}", row, rack="r-1") for i in range(2)]
    outcome = decide([*fleet, machine("m-large", cpu=8, rack="r-2")], [row])
    assert outcome.does == {}


def test_a_gang_under_two_labels_shares_both() -> None:
    where = [label("row", "Same"), label(RACK, "Same")]
    row = replace(need(cpu=8, unit=4, group="g"), profile=Profile.of(where, priority=100))
    fleet = [
        machine("m-1", rack="r-1", labels={"row": "a"}),
        machine("m-2", rack="r-1", labels={"row": "b"}),
        machine("m-3", rack="r-1", labels={"row": "b"}),
    ]
    outcome = decide(fleet, [row])
    assert outcome.serves() == {"m-2", "m-3"}
    assert outcome.domain() == "b,r-1"


def test_a_gang_may_name_the_places_it_accepts() -> None:
    where = [label(RACK, "Same", "r-2", "r-3")]
    row = replace(need(cpu=8, unit=4, group="g"), profile=Profile.of(where, priority=100))
    outcome = decide([*rack("r-1", 2), *rack("r-2", 2)], [row])
    assert outcome.domain() == "r-2"


def test_a_gang_without_a_place_shows_since_when() -> None:
    outcome = decide(rack("r-1", 1), [gang()])
    assert outcome.plan.verdicts.homeless_since[0] == NOW
    assert decide(rack("r-1", 2), [gang()]).plan.verdicts.homeless_since[0] == 0


def test_when_folded_gangs_become_fewer_the_costliest_machines_are_given_up() -> None:
    rows = [gang(cpu=8, group=f"g-{i}") for i in range(3)]
    fleet = [
        serving(f"m-{i}", rows[i], cpu=8, rack=f"r-{i}", price=price, sequence=i + 1)
        for i, price in enumerate([9.0, 1.0, 5.0])
    ]
    both = shard()
    assert after(both, fleet, rows).does == {}
    # Another gang of the same kind is left alone: the fold remembers that it was larger.
    left = [gang(cpu=8, group="g-9")]
    for seconds in (10, 20):
        outcome = after(both, fleet, left, seconds)
        assert outcome.serves() == {"m-1"}
        assert outcome.does == {"m-0": K.RECLAIM, "m-2": K.RECLAIM}


def test_a_phantom_stays_until_the_gang_that_replaces_it_serves() -> None:
    # The whole gang fits on the machine that is lost, but on no other: two smaller ones replace it.
    row = gang(cpu=8)
    lost = serving("m-lost", row, cpu=8, rack="r-0", not_ready_for=2_000)
    outcome = decide([lost, *rack("r-1", 2)], [row])
    assert outcome.does == {"m-r-1-0": K.BOOTSTRAP, "m-r-1-1": K.BOOTSTRAP}


def test_a_gang_that_cannot_be_completed_gives_its_part_of_a_quota_back() -> None:
    low = need(B, priority=0)
    fleet = [
        *(serving(f"m-{i}", replace(low, group=f"v-{i}"), rack=f"r-{i}") for i in range(2)),
        *(machine(f"n-{i}", S.SPECULATIVE, rack=f"r-{i}") for i in range(2)),
    ]
    rows = [
        gang(cpu=12, group="too-large", priority=1_000),
        gang(cpu=8, group="fits", priority=500),
        *(replace(low, group=f"v-{i}") for i in range(2)),
    ]
    # Two slots are in use: the quota leaves one.
    outcome = decide(fleet, rows, Policy(quotas={("p", "r"): 3}))
    assert sorted(outcome.does.values()) == [K.PROVISION, K.PREEMPT]
    assert outcome.serves(0) == set()


def test_machines_that_lack_a_dimension_do_not_hold_a_gang_in_their_place() -> None:
    # The worst dimension counts: what is stamped in r-0 has no gpu, so it covers nothing.
    row = need(A, cpu=8, unit=4, gpu=2, same=RACK, group="g")
    home = serving("m-home", row, cpu=4, rack="r-0")
    fleet = [
        home,
        machine("m-0", cpu=8, gpu=4, rack="r-0"),
        machine("m-1", cpu=8, gpu=2, rack="r-1"),
    ]
    assert decide(fleet, [row]).domain() == "r-1"


def test_members_of_a_fold_are_given_to_serving_machines_first() -> None:
    rows = [gang(cpu=4, group=f"g-{i}") for i in range(2)]
    gone = need(A, group="gone")
    coming = machine("m-1", S.CREATING, serves=gone, cpu=4, rack="r-1")
    outcome = decide([coming, serving("m-2", gone, cpu=4, rack="r-1")], rows)
    groups = {name: outcome.stamp(name) for name in ("m-1", "m-2")}
    assert {name: stamp and stamp.group for name, stamp in groups.items()} == {
        "m-2": "g-0",
        "m-1": "g-1",
    }


def test_what_is_preempted_for_a_fold_is_for_a_member_that_has_nothing_yet() -> None:
    low = need(B, cpu=8, priority=0)
    rows = [gang(cpu=8, group=f"g-{i}", priority=1_000) for i in range(2)]
    fleet = [serving("m-large", low, cpu=8, rack="r-0"), *rack("r-1", 2)]
    outcome = decide(fleet, [*rows, low])
    meant = outcome.meant_for("m-large")
    assert outcome.does["m-large"] is K.PREEMPT
    assert meant is not None
    assert meant.group == "g-1"


def test_what_is_preempted_for_a_fold_skips_every_member_that_has_a_machine() -> None:
    low = need(B, cpu=8, priority=0)
    rows = [gang(cpu=8, group=f"g-{i}", priority=1_000) for i in range(5)]
    fleet = [
        serving("m-large", low, cpu=8, rack="r-0"),
        *(machine(f"m-{i}", cpu=8, rack=f"r-{i}") for i in range(3)),
    ]
    meant = decide(fleet, [*rows, low]).meant_for("m-large")
    assert meant is not None
    assert meant.group == "g-3"


def test_a_gang_that_wants_one_host_is_served_by_a_machine_that_has_no_host_yet() -> None:
    together = need(A, cpu=8, unit=2, same=LABEL_HOSTNAME, group="g")
    fleet = [machine("m-1", S.SPECULATIVE, cpu=4), machine("m-2", S.SPECULATIVE, cpu=8)]
    outcome = decide(fleet, [together])
    assert outcome.does == {"m-2": K.PROVISION}
    assert outcome.satisfied()


def test_a_gang_that_wants_one_host_and_fits_on_none_takes_nothing() -> None:
    together = need(A, cpu=8, unit=2, same=LABEL_HOSTNAME, group="g")
    unnamed = [machine(f"m-{i}", cpu=4) for i in range(2)]
    named = [replace(m, labels={**m.labels, LABEL_HOSTNAME: m.id}) for m in unnamed]
    for fleet in (named, unnamed):
        outcome = decide(fleet, [together])
        assert outcome.does == {}
        assert outcome.reason() is Reason.TOPOLOGY_UNSATISFIABLE


def test_a_gang_that_has_outgrown_its_host_gets_a_larger_one() -> None:
    together = need(A, cpu=8, unit=2, same=LABEL_HOSTNAME, group="g")
    fleet = [serving("m-1", together, cpu=4), machine("m-2", cpu=8)]
    outcome = decide(fleet, [together])
    # Its pods can be together on the larger one alone.
    assert outcome.does == {"m-2": K.BOOTSTRAP, "m-1": K.RECLAIM}
    assert outcome.serves() == {"m-2"}
    assert outcome.satisfied()
