"""An observed record and a known machine: whose word counts for what."""

from dataclasses import replace
from itertools import product

import pytest

from bigfleet.model import (
    CapacityType,
    Departure,
    HostRef,
    Machine,
    MachineState,
    PenaltyBucket,
    Stamp,
)
from bigfleet.model.lifecycle import BOUND, is_legal_move
from bigfleet.shard.machines.merge_record import MergeResult, ends_transition, merge

S = MachineState
NOW = 1_000
STATES = [state for state in S if state is not S.UNSPECIFIED]
MINE = Stamp("c-1", "shape", "", "print", 100, PenaltyBucket.ZERO, PenaltyBucket.ZERO, 7)
THEIRS = replace(MINE, cluster="c-2", sequence=8)


def machine(state: MachineState, **fields: object) -> Machine:
    host = None if state in (S.SPECULATIVE, S.CREATING) else HostRef("cloud", "h-1")
    cluster = "c-1" if state in (S.CONFIGURING, S.CONFIGURED, S.DRAINING) else ""
    made = Machine(
        "m-1", state, host, "cloud", "region", cluster, "small", "z-a", CapacityType.ON_DEMAND,
        {"pool": "p"}, {"cpu": 4000}, price_per_hour=0.5,
        last_error="HostLost: gone" if state is S.FAILED else "",
    )  # fmt: skip
    return replace(made, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(("known", "seen"), list(product(STATES, STATES)))
def test_the_providers_word_is_always_taken(known: MachineState, seen: MachineState) -> None:
    before = machine(known, stamp=MINE, excluded=True)
    merged = merge(before, machine(seen, price_per_hour=0.75), NOW)
    after = merged.machine
    assert (after.state, after.price_per_hour, after.host) == (seen, 0.75, machine(seen).host)
    assert after.excluded
    assert merged.changed
    assert merged.jumped == (
        known is not seen and known is not S.FAILED and not is_legal_move(known, seen)
    )
    assert merged.lost == (known in BOUND and seen is S.FAILED)
    assert merged.freed == (known is not seen and seen in (S.IDLE, S.SPECULATIVE))
    assert merged.delivered == (known is not seen and seen is S.CONFIGURED)


@pytest.mark.parametrize("state", STATES)
def test_the_same_again_changes_nothing(state: MachineState) -> None:
    once = merge(None, machine(state), NOW)
    assert once.changed
    again = merge(once.machine, machine(state), NOW + 50)
    assert again == MergeResult(once.machine)


def test_first_sight_of_what_can_be_taken_frees_it() -> None:
    for state in STATES:
        assert merge(None, machine(state), NOW).freed == (state in (S.IDLE, S.SPECULATIVE))


def test_first_sight_says_since_when_it_is_idle_and_that_it_leaves() -> None:
    assert merge(None, machine(S.IDLE), NOW).machine.idle_since_ns == NOW
    assert merge(None, machine(S.IDLE, idle_since_ns=7), NOW).machine.idle_since_ns == 7
    assert merge(None, machine(S.DRAINING), NOW).machine.leaving == Departure(None, NOW)
    told = machine(S.DRAINING, leaving=Departure(THEIRS, 5))
    assert merge(None, told, NOW).machine.leaving == Departure(THEIRS, 5)


@pytest.mark.parametrize(
    ("known", "seen", "stays"),
    [
        (S.CREATING, S.CREATING, True),
        (S.CREATING, S.IDLE, True),
        (S.IDLE, S.CONFIGURING, True),
        (S.CONFIGURING, S.CONFIGURED, True),
        (S.CONFIGURING, S.IDLE, True),
        (S.SPECULATIVE, S.CREATING, True),
        (S.CONFIGURED, S.CREATING, False),
        (S.IDLE, S.SPECULATIVE, False),
        (S.IDLE, S.DELETING, False),
        (S.CREATING, S.FAILED, False),
    ],
)
def test_a_stamp_stays_while_the_machine_is_somebodys(
    known: MachineState, seen: MachineState, stays: bool
) -> None:
    merged = merge(machine(known, stamp=MINE), machine(seen), NOW)
    assert merged.machine.stamp == (MINE if stays else None)


def test_the_shards_own_stamp_is_completer_than_the_records() -> None:
    known = machine(S.CONFIGURING, stamp=MINE)
    seen = machine(S.CONFIGURED, stamp=replace(MINE, shape="", sequence=0))
    assert merge(known, seen, NOW).machine.stamp == MINE
    assert merge(replace(known, stamp=None), seen, NOW).machine.stamp == seen.stamp


def test_a_binding_of_another_client_ends_what_was_planned() -> None:
    known = machine(S.CONFIGURING, stamp=MINE, not_ready_since_ns=5, pods=3, do_not_disrupt=True)
    seen = machine(S.CONFIGURED, cluster="c-2", stamp=THEIRS)
    after = merge(known, seen, NOW).machine
    assert (after.cluster, after.stamp) == ("c-2", THEIRS)
    assert (after.not_ready_since_ns, after.pods, after.do_not_disrupt) == (0, None, False)


def test_a_record_may_leave_out_the_cluster_until_the_machine_is_its_node() -> None:
    known = machine(S.CONFIGURING, stamp=MINE)
    merged = merge(known, machine(S.CONFIGURING, cluster=""), NOW)
    assert (merged.machine, merged.changed) == (known, False)
    # It is unknown what a Configured machine is that is being configured again.
    again = merge(machine(S.CONFIGURED, stamp=MINE), machine(S.CONFIGURING, cluster=""), NOW)
    assert (again.machine.cluster, again.jumped) == ("", True)


@pytest.mark.parametrize("state", [S.CONFIGURING, S.CONFIGURED, S.DRAINING])
def test_a_machine_that_goes_from_one_cluster_to_another_has_skipped_a_drain(
    state: MachineState,
) -> None:
    known = machine(state, stamp=MINE)
    assert merge(known, machine(state, cluster="c-2", stamp=THEIRS), NOW).jumped
    assert not merge(known, machine(state), NOW).jumped


def test_a_drained_machine_belongs_to_whom_it_was_drained_for() -> None:
    for heir in (THEIRS, None):
        known = machine(S.DRAINING, stamp=MINE, leaving=Departure(heir, 5))
        after = merge(known, machine(S.IDLE), NOW).machine
        assert (after.stamp, after.leaving, after.idle_since_ns) == (heir, None, NOW)


def test_leaving_lasts_while_it_serves_the_cluster_it_leaves() -> None:
    leaving = Departure(THEIRS, 5)
    known = machine(S.CONFIGURED, leaving=leaving)
    assert merge(known, machine(S.CONFIGURED), NOW).machine.leaving == leaving
    assert merge(known, machine(S.DRAINING), NOW).machine.leaving == leaving
    assert merge(known, machine(S.CONFIGURED, cluster="c-2"), NOW).machine.leaving is None
    assert merge(known, machine(S.FAILED), NOW).machine.leaving is None
    unasked = merge(machine(S.CONFIGURED), machine(S.DRAINING), NOW).machine
    assert unasked.leaving == Departure(None, NOW)


def test_idle_is_counted_from_when_it_began() -> None:
    known = machine(S.IDLE, idle_since_ns=7)
    assert merge(known, machine(S.IDLE), NOW).machine.idle_since_ns == 7
    assert merge(machine(S.DRAINING), machine(S.IDLE), NOW).machine.idle_since_ns == NOW
    assert merge(known, machine(S.CONFIGURING), NOW).machine.idle_since_ns == 0


def test_what_a_cluster_said_of_its_node_stays_with_the_binding() -> None:
    known = machine(S.CONFIGURED, not_ready_since_ns=5, pods=3, do_not_disrupt=True)
    after = merge(known, machine(S.CONFIGURED, price_per_hour=0.75), NOW).machine
    assert (after.not_ready_since_ns, after.pods, after.do_not_disrupt) == (5, 3, True)
    freed = merge(known, machine(S.IDLE), NOW).machine
    assert (freed.not_ready_since_ns, freed.pods, freed.do_not_disrupt) == (0, None, False)


@pytest.mark.parametrize(("known", "seen"), list(product(STATES, STATES)))
def test_only_the_end_of_what_is_under_way_can_be_taken_from_an_old_answer(
    known: MachineState, seen: MachineState
) -> None:
    ends = {
        S.CREATING: (S.IDLE, S.FAILED),
        S.CONFIGURING: (S.CONFIGURED, S.FAILED),
        S.DRAINING: (S.IDLE, S.FAILED),
        S.DELETING: (S.SPECULATIVE, S.FAILED),
    }
    cluster = "c-1" if seen in (*BOUND, S.DRAINING, S.FAILED) else ""
    assert ends_transition(machine(known), machine(seen, cluster=cluster)) == (
        seen in ends.get(known, ())
    )


def test_the_end_of_another_clusters_configuring_is_not_ours() -> None:
    assert not ends_transition(machine(S.CONFIGURING), machine(S.CONFIGURED, cluster="c-2"))
