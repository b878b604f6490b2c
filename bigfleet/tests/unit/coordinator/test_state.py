"""Rules of the state that are worth a sentence each, and its size."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from bigfleet.coordinator.state import (
    AddShard,
    AssignDomain,
    BindCluster,
    Command,
    ContactClusters,
    CorruptRowError,
    FleetState,
    ForgetMoves,
    MachineShape,
    Move,
    MovePhase,
    PlanMoves,
    ProviderEntry,
    QuotaShift,
    RefusalError,
    RegisterProvider,
    RemoveProvider,
    RemoveShard,
    SetQuota,
    StepMove,
    Tier,
    apply,
    rows_of,
    state_of,
)
from bigfleet.coordinator.state.changes import Changes, Put
from bigfleet.coordinator.state.rows import all_rows
from bigfleet.coordinator.store.changes import changes_of
from bigfleet.coordinator.store.interface import StoredRow

HOSTILE = ["ü" * 400, "c" * 5_000_000, "a\0b", "a\r\nforged log line", "../../etc/passwd", "a b"]


@pytest.mark.parametrize("name", HOSTILE, ids=lambda text: f"{len(text)} characters")
def test_a_name_that_breaks_the_rules_is_refused_in_few_words_and_not_stored(name: str) -> None:
    state = built(AddShard("a", "a:1"))
    commands: list[Command] = [
        AddShard(name, "a:1"),
        AssignDomain(name, "v", "a"),
        AssignDomain("k", name, "a"),
        BindCluster(name, "a"),
        BindCluster("c", name),
        SetQuota(name, "", {"a": 1}),
        RegisterProvider(ProviderEntry(name, "p:1")),
        RemoveShard(name),
        RemoveProvider(name),
    ]
    if not name.isprintable() or len(name) > 1024:
        commands += [
            SetQuota("p", name, {"a": 1}),
            RegisterProvider(ProviderEntry("p", "p:1", name)),
        ]
    for command in commands:
        with pytest.raises(RefusalError) as caught:
            apply(state, command, 9)
        assert len(str(caught.value)) < 700
    assert apply(state, ContactClusters("a", (name,)), 9) == Changes()


def test_what_an_older_release_stored_can_be_assigned_again_and_removed() -> None:
    odd = ProviderEntry("ü %2F", "p:1")
    state = built(AddShard("a", "a:1"))
    state.take(Changes((Put("providers", odd.name, odd),)))
    moved = ProviderEntry(odd.name, "q:1")
    assert done(state, RegisterProvider(moved)).providers == {odd.name: moved}
    assert done(state, RemoveProvider(odd.name)).providers == {}


def test_the_longest_names_fit_into_a_key() -> None:
    domain = (".".join(["a" * 49] * 5) + "/" + "k" * 63, "v" * 63)
    state = built(AddShard("a", "a:1"))
    puts, deletes = rows_of(apply(state, AssignDomain(*domain, "a"), 9))
    assert changes_of(puts, deletes)


def built(*commands: Command) -> FleetState:
    state = FleetState()
    for now, command in enumerate(commands, 1):
        state.take(apply(state, command, now))
    return state


def done(state: FleetState, command: Command, now: int = 100) -> FleetState:
    state.take(apply(state, command, now))
    return state


TWO = (AddShard("s-1", "h:1"), AddShard("s-2", "h:2"))
MOVE = Move(
    "m-1", Tier.QUOTA, "s-1", "s-2", 3, MachineShape("std", requirements=(("k", 1, ("v",)),))
)


def test_a_new_address_does_not_change_who_is_the_default_shard() -> None:
    state = done(built(*TWO), AddShard("s-1", "elsewhere:1"))
    assert state.shards["s-1"].registered_at == 100
    assert state.default_shard == "s-1"
    assert done(state, RemoveShard("s-1")).default_shard == "s-2"


def test_a_limit_does_not_vanish_with_its_last_shard() -> None:
    state = built(*TWO, SetQuota("p", "r", {"s-1": 5}), RemoveShard("s-1"))
    assert state.quotas == {("p", "r"): {}}


def test_removing_an_allocation_needs_no_room_under_the_announced_total() -> None:
    state = built(*TWO, SetQuota("p", "r", {"s-1": 5}), SetQuota("p", "r", {}, announced=0))
    assert state.quotas == {}


def test_a_revision_is_the_time_where_that_is_later() -> None:
    state = done(built(*TWO), AssignDomain("z", "a", "s-1"), now=1_000)
    assert state.revision == 1_000
    assert done(state, AssignDomain("z", "b", "s-1"), now=10).revision == 1_001


def test_a_move_goes_forward_and_is_told_as_often_as_one_likes() -> None:
    state = built(*TWO, PlanMoves((MOVE,)))
    for phase in (MovePhase.DONOR_RELEASED, MovePhase.RECIPIENT_ADOPTED, MovePhase.DONE):
        step = StepMove("m-1", phase, ("a", "b"))
        done(state, step)
        assert not apply(state, step, 200)
    assert state.moves["m-1"].machine_ids == ("a", "b")
    with pytest.raises(RefusalError, match="cannot become abandoned"):
        apply(state, StepMove("m-1", MovePhase.ABANDONED, ("a", "b")), 300)


def test_a_move_does_not_go_back() -> None:
    state = built(*TWO, PlanMoves((MOVE,)), StepMove("m-1", MovePhase.RECIPIENT_ADOPTED))
    with pytest.raises(RefusalError, match="cannot go back to planned"):
        apply(state, StepMove("m-1", MovePhase.PLANNED), 300)


def test_the_quota_goes_with_the_slots_once() -> None:
    state = built(*TWO, SetQuota("p", "r", {"s-1": 5}), PlanMoves((MOVE,)))
    revision = state.revision
    step = StepMove("m-1", MovePhase.DONOR_RELEASED, ("a",), shift=QuotaShift(("p", "r"), 3))
    done(state, step)
    assert state.quotas["p", "r"] == {"s-1": 2, "s-2": 3}
    assert state.revision > revision
    done(state, step)
    assert state.quotas["p", "r"] == {"s-1": 2, "s-2": 3}


def test_without_an_allocation_there_is_nothing_to_shift() -> None:
    state = built(*TWO, PlanMoves((MOVE,)))
    done(state, StepMove("m-1", MovePhase.DONOR_RELEASED, shift=QuotaShift(("p", "r"), 3)))
    assert state.quotas == {}


def test_more_slots_than_the_donor_has_cannot_leave_it() -> None:
    state = built(*TWO, SetQuota("p", "r", {"s-1": 2}), PlanMoves((MOVE,)))
    with pytest.raises(RefusalError, match="3 slots cannot leave 's-1', which has 2"):
        apply(state, StepMove("m-1", MovePhase.DONOR_RELEASED, shift=QuotaShift(("p", "r"), 3)), 9)


def test_only_moves_that_are_over_are_forgotten() -> None:
    state = built(*TWO, PlanMoves((MOVE,)))
    with pytest.raises(RefusalError, match="only one that is over can go"):
        apply(state, ForgetMoves(("m-1",)), 9)
    done(state, StepMove("m-1", MovePhase.ABANDONED, reason="the donor has none"))
    assert done(state, ForgetMoves(("m-1", "never-was"))).moves == {}


@pytest.mark.parametrize(
    ("move", "code"),
    [
        (Move("", Tier.IDLE, "s-1", "s-2", 1), "INVALID_ARGUMENT"),
        (Move("m", Tier.IDLE, "s-1", "s-1", 1), "INVALID_ARGUMENT"),
        (Move("m", Tier.IDLE, "s-1", "s-2", 0), "INVALID_ARGUMENT"),
        (Move("m", Tier.IDLE, "s-1", "s-9", 1), "NOT_FOUND"),
        (MOVE, "ALREADY_EXISTS"),
    ],
)
def test_moves_that_make_no_sense_are_refused(move: Move, code: str) -> None:
    state = built(*TWO, PlanMoves((MOVE,)))
    with pytest.raises(RefusalError) as refusal:
        apply(state, PlanMoves((move,)), 9)
    assert refusal.value.code == code


def test_a_move_is_the_same_after_it_was_stored() -> None:
    state = built(
        *TWO, PlanMoves((MOVE,)), StepMove("m-1", MovePhase.DONOR_RELEASED, ("a",), 2, "x")
    )
    assert state_of(all_rows(state)).moves == state.moves


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (StoredRow("hats", "a", b"1"), "a newer release wrote it"),
        (StoredRow("shards", "s-1", b"{"), "restore a snapshot"),
        (StoredRow("shards", "s-1", b"[]"), "restore a snapshot"),
        (StoredRow("domains", "alone", b'"s-1"'), "cannot be read"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(row: StoredRow, words: str) -> None:
    with pytest.raises(CorruptRowError, match=words):
        state_of([row])


def test_a_large_fleet_is_small_and_quick() -> None:
    state = FleetState()
    for number in range(200):
        state.take(apply(state, AddShard(f"s-{number}", f"10.0.0.1:{number}"), number + 1))
    rows = [
        *all_rows(state),
        *(
            StoredRow("domains", f"example.com%2Frack/rack-{number:06}", b'"s-%d"' % (number % 200))
            for number in range(100_000)
        ),
        *(
            StoredRow(
                "clusters", f"cluster-{number}", b'{"shard":"s-%d","bound_at":1}' % (number % 200)
            )
            for number in range(20_000)
        ),
    ]
    tracemalloc.start()
    try:
        state = state_of(rows)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 64 * 2**20
    begun = time.process_time()
    for number in range(1_000):
        done(state, AssignDomain("example.com/rack", f"new-{number}", "s-7"), number)
    done(state, ContactClusters("s-7", tuple(f"new-{number}" for number in range(1_000))), 7)
    # A thousand of these take some ten milliseconds; with a copy of the tables each, a minute.
    assert time.process_time() - begun < 2.0
