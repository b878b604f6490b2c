"""Credit: which of its machines a need claims, and which it gives up."""

from bigfleet.decision import ActionKind
from worlds import A, S, decide, label, machine, need, replace, serving

K = ActionKind


def test_growth_never_swaps_a_serving_machine_for_a_newer_one() -> None:
    row = need(cpu=8, unit=4)
    fleet = [
        serving("m-1", row, sequence=3, price=1.0),
        serving("m-2", row, sequence=1, price=9.0),
        serving("m-3", row, sequence=2, price=5.0),
    ]
    outcome = decide(fleet, [row])
    assert outcome.serves() == {"m-2", "m-3"}
    assert outcome.does == {"m-1": K.RECLAIM}


def test_shrinking_gives_up_the_most_expensive_of_before() -> None:
    row = replace(need(cpu=8, unit=4), shrunk_at=10)
    fleet = [
        serving("m-1", row, sequence=3, price=1.0),
        serving("m-2", row, sequence=1, price=9.0),
        serving("m-3", row, sequence=2, price=5.0),
    ]
    assert decide(fleet, [row]).does == {"m-2": K.RECLAIM}


def test_of_equal_price_the_greater_reclamation_penalty_stays_then_the_smaller_id() -> None:
    row = replace(need(group="here"), shrunk_at=10)
    gone, valued = need(group="gone"), need(group="gone", reclamation=9)
    fleet = [serving("m-1", gone), serving("m-2", valued)]
    assert decide(fleet, [row]).serves() == {"m-2"}
    same = [serving("m-2", row), serving("m-1", row)]
    assert decide(same, [row]).serves() == {"m-1"}


def test_configured_goes_before_configuring_before_creating() -> None:
    row = need()
    fleet = [
        machine("m-1", S.CREATING, serves=row, sequence=1),
        machine("m-2", S.CONFIGURING, serves=row, sequence=2),
        serving("m-3", row, sequence=3),
    ]
    assert decide(fleet, [row]).serves() == {"m-3"}
    assert decide(fleet[:2], [row]).serves() == {"m-2"}


def test_machines_stamped_for_a_need_are_its_before_any_other_gets_them() -> None:
    first, second = need(interruption=2, group="x"), need(group="y")
    outcome = decide([serving("m-1", second)], [first, second])
    assert outcome.row(0) < outcome.row(1)
    assert outcome.serves(1) == {"m-1"}


def test_a_changed_priority_does_not_orphan_what_is_held() -> None:
    old = need(priority=100)
    new = need(priority=300)
    outcome = decide([serving("m-1", old), machine("m-2")], [new])
    assert outcome.serves() == {"m-1"}
    assert outcome.does == {}
    stamp = outcome.stamp("m-1")
    assert stamp is not None
    assert (stamp.priority, stamp.sequence) == (300, 1)


def test_the_same_fingerprint_comes_before_the_same_shape() -> None:
    first, second = need(interruption=2), need()
    outcome = decide([serving("m-1", second)], [first, second])
    assert outcome.row(0) < outcome.row(1)
    assert outcome.serves(1) == {"m-1"}


def test_orphans_are_claimed_before_what_other_needs_left_over() -> None:
    rich, poor = need(group="rich"), need(group="poor")
    fleet = [
        serving("m-1", rich, sequence=1),
        serving("m-2", rich, sequence=2),
        serving("m-3", need(group="gone"), sequence=3),
    ]
    outcome = decide(fleet, [rich, poor])
    assert outcome.serves(1) == {"m-3"}
    assert outcome.does == {"m-2": K.RECLAIM}


def test_a_claim_of_another_needs_machine_stamps_it_again() -> None:
    row = need(group="poor")
    outcome = decide([serving("m-1", need(group="gone"), sequence=5)], [row])
    stamp = outcome.stamp("m-1")
    assert stamp is not None
    assert stamp.group == "poor"
    assert stamp.sequence > 5


def test_machines_that_cover_the_unit_are_claimed_before_smaller_ones() -> None:
    row = replace(need(cpu=7), min_unit={"cpu": 4000})
    small = serving("m-1", row, cpu=3, sequence=1)
    large = serving("m-2", row, cpu=4, sequence=2)
    outcome = decide([small, large], [row])
    assert outcome.serves() == {"m-1", "m-2"}
    enough = decide([small, large, serving("m-3", row, cpu=4, sequence=3)], [row])
    assert enough.serves() == {"m-2", "m-3"}


def test_one_odd_pod_in_a_row_does_not_orphan_what_serves_the_rest() -> None:
    row = replace(need(cpu=100), min_unit={"cpu": 64_000})
    outcome = decide([serving("m-1", row), serving("m-2", row)], [row])
    assert outcome.does == {}
    assert outcome.lacks() == {"cpu": 92_000}


def test_a_machine_that_matches_no_longer_is_not_claimed() -> None:
    row = need(where=[label("pool", "In", "a")])
    fleet = [serving("m-1", row, labels={"pool": "b"})]
    assert decide(fleet, [row]).does == {"m-1": K.RECLAIM}


def test_pinned_demand_refuses_interruptible_machines_unless_they_carry_its_stamp() -> None:
    pinned = need(interruption=27)
    other = serving("m-1", need(A, group="gone"), risk=0.1)
    assert not decide([other], [pinned]).satisfied()
    assert decide([serving("m-1", pinned, risk=0.1)], [pinned]).satisfied()


def test_what_each_machine_was_claimed_for_stays_when_a_transition_ends() -> None:
    row = need(cpu=9, unit=1)
    small = serving("m-1", row, cpu=2, sequence=1)
    for state in (S.CREATING, S.CONFIGURING, S.CONFIGURED):
        large = machine("m-2", state, serves=row, cpu=9, sequence=2)
        outcome = decide([small, large], [row])
        assert outcome.serves() == {"m-1", "m-2"}
        assert outcome.does == {}


def test_a_drain_called_off_comes_last_in_the_order() -> None:
    row = need(cpu=8, unit=4)
    fleet = [serving("m-1", row, sequence=5), serving("m-2", row, sequence=2, leaving=True)]
    outcome = decide(fleet, [row])
    assert outcome.does == {"m-2": K.KEEP}
    stamp = outcome.stamp("m-2")
    assert stamp is not None
    assert stamp.sequence > 5
