"""How a move goes on: what is written and what is told, phase by phase."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bigfleet.coordinator.rebalance import rules
from bigfleet.coordinator.rebalance.moves.advance import (
    HeldTransfer,
    MoveAdvance,
    MoveContext,
    MoveInstruction,
    MoveReply,
    MoveSide,
    MoveTask,
    TransferEnd,
    advance,
)
from bigfleet.coordinator.rebalance.moves.instruction_texts import instruction_id, payload_of
from bigfleet.coordinator.state import MachineShape, Move, MovePhase, QuotaShift, StepMove, Tier
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

SECOND = 1_000_000_000
NOW = 1_000_000 * SECOND
IDS = ("m-1", "m-2")
MOVE = Move(
    "m", Tier.IDLE, "a", "b", 2, MachineShape("std", "z", "p", "r"), created_at=NOW, updated_at=NOW
)
A, B = MoveSide("a"), MoveSide("b")
GAVE = replace(A, held=(HeldTransfer("m", TransferEnd.DONOR, IDS),))
TOOK = replace(B, held=(HeldTransfer("m", TransferEnd.RECIPIENT, IDS),))
HERE = MoveContext(NOW, released_here=True)
WAIT = MoveAdvance()


def at(phase: MovePhase, **more: object) -> Move:
    ids = () if phase is MovePhase.PLANNED else IDS
    return replace(MOVE, **{"phase": phase, "machine_ids": ids, **more})  # type: ignore[arg-type]


def after(
    move: Move,
    donor: MoveSide = A,
    recipient: MoveSide = B,
    *words: MoveReply,
    context: MoveContext = HERE,
) -> MoveAdvance:
    return advance(move, donor, recipient, words, context)


def phase(verdict: MoveAdvance) -> MovePhase | None:
    return None if verdict.step is None else verdict.step.phase


def told(verdict: MoveAdvance) -> list[tuple[str, str]]:
    assert verdict.step is None
    return [(order.shard, order.task.value) for order in verdict.orders]


# -- planned -----------------------------------------------------------------------------------


def test_the_donor_is_asked_to_pick_until_it_holds_something() -> None:
    assert told(after(at(MovePhase.PLANNED))) == [("a", "pick")]
    assert after(at(MovePhase.PLANNED), GAVE).step == StepMove("m", MovePhase.DONOR_RELEASED, IDS)


def test_a_pick_is_believed_of_a_shard_that_does_not_say_what_it_holds() -> None:
    word = MoveReply(MoveTask.PICK, True, machine_ids=IDS)
    assert after(at(MovePhase.PLANNED), A, B, word).step == StepMove(
        "m", MovePhase.DONOR_RELEASED, IDS
    )


@pytest.mark.parametrize(
    "word",
    [
        MoveReply(MoveTask.PICK, True),
        MoveReply(MoveTask.PICK, False, reason="no"),
        MoveReply(MoveTask.PICK, True, is_repeated=True, machine_ids=IDS),
    ],
    ids=["none to give", "failed", "settled by an earlier leader"],
)
def test_a_pick_that_gives_nothing_ends_the_move(word: MoveReply) -> None:
    assert phase(after(at(MovePhase.PLANNED), A, B, word)) is MovePhase.ABANDONED


def test_a_donor_that_says_nothing_is_not_waited_for_forever() -> None:
    late = MoveContext(NOW + int((rules.PICK_SECONDS + 1) * SECOND))
    assert phase(after(at(MovePhase.PLANNED), context=late)) is MovePhase.ABANDONED
    assert phase(after(at(MovePhase.PLANNED), GAVE, context=late)) is MovePhase.DONOR_RELEASED


def test_a_planned_move_ends_with_either_shard() -> None:
    for sides in ((replace(A, is_registered=False), B), (A, replace(B, is_registered=False))):
        assert phase(after(at(MovePhase.PLANNED), *sides)) is MovePhase.ABANDONED


def test_a_planned_move_is_not_given_up_before_its_donor_was_heard() -> None:
    late = MoveContext(NOW + 4_000 * SECOND)
    unheard = replace(A, is_heard=False)
    assert after(at(MovePhase.PLANNED), unheard, context=late) == WAIT
    assert after(at(MovePhase.PLANNED), GAVE, context=late).step == StepMove(
        "m", MovePhase.DONOR_RELEASED, IDS
    )
    assert phase(after(at(MovePhase.PLANNED), A, context=late)) is MovePhase.ABANDONED
    silent = replace(unheard, is_silent=True)
    assert phase(after(at(MovePhase.PLANNED), silent, context=late)) is MovePhase.ABANDONED


def test_a_planned_move_is_not_given_up_before_its_recipient_was_heard() -> None:
    late = MoveContext(NOW + int((rules.PICK_SECONDS + 1) * SECOND))
    assert after(at(MovePhase.PLANNED), A, replace(B, is_heard=False), context=late) == WAIT
    assert phase(after(at(MovePhase.PLANNED), A, TOOK, context=late)) is MovePhase.RECIPIENT_ADOPTED


def test_machines_are_drained_then_asked_for_by_name_once_they_had_time() -> None:
    move = at(MovePhase.PLANNED, tier=Tier.PREEMPT)
    assert told(after(move)) == [("a", "drain")]
    drained = after(move, A, B, MoveReply(MoveTask.DRAIN, True, machine_ids=("m-1",)))
    assert drained.step == StepMove("m", MovePhase.PLANNED, ("m-1",))
    move = replace(move, machine_ids=("m-1",))
    assert after(move) == WAIT
    later = MoveContext(NOW + 16 * SECOND)
    assert after(move, context=later).orders == (MoveInstruction("a", MoveTask.GIVE, ("m-1",)),)
    assert told(after(move, A, B, MoveReply(MoveTask.GIVE, False), context=later)) == [
        ("a", "give")
    ]
    gave_none = after(move, A, B, MoveReply(MoveTask.GIVE, True), context=later)
    assert phase(gave_none) is MovePhase.ABANDONED


def test_a_machine_that_another_move_has_is_not_taken_twice() -> None:
    move = at(MovePhase.PLANNED, tier=Tier.PREEMPT)
    taken = replace(HERE, is_free=lambda _: False)
    word = MoveReply(MoveTask.DRAIN, True, machine_ids=("m-1",))
    assert phase(after(move, A, B, word, context=taken)) is MovePhase.ABANDONED


# -- donor_released ----------------------------------------------------------------------------


def test_the_recipient_is_told_the_names_until_it_holds_them() -> None:
    released = at(MovePhase.DONOR_RELEASED)
    assert after(released, GAVE).orders == (MoveInstruction("b", MoveTask.ADOPT, IDS),)
    assert phase(after(released, GAVE, TOOK)) is MovePhase.RECIPIENT_ADOPTED
    word = MoveReply(MoveTask.ADOPT, True)
    assert phase(after(released, GAVE, B, word)) is MovePhase.RECIPIENT_ADOPTED


def test_a_new_leader_first_hears_from_the_donor_that_it_let_go() -> None:
    released, new = at(MovePhase.DONOR_RELEASED), MoveContext(NOW)
    unheard = replace(A, is_heard=False)
    assert after(released, unheard, context=new) == WAIT
    assert told(after(released, GAVE, context=new)) == [("b", "adopt")]
    silent = replace(unheard, is_silent=True)
    assert told(after(released, silent, context=new)) == [("b", "adopt")]
    assert phase(after(released, A, context=new)) is MovePhase.ABANDONED, "the row is an old one"
    assert after(released, A, replace(B, is_heard=False), context=new) == WAIT


def test_a_recipient_that_fails_too_often_loses_the_machines_once_it_surely_has_none() -> None:
    failed = MoveReply(MoveTask.ADOPT, False, reason="disk full")
    released = at(MovePhase.DONOR_RELEASED)
    assert after(released, GAVE, B, failed).step == StepMove(
        "m", MovePhase.DONOR_RELEASED, (), 1, "disk full"
    )
    hopeless = replace(released, tries=rules.MOST_OFFERS)
    assert after(hopeless, GAVE, replace(B, is_clear=False)) == WAIT
    assert after(hopeless, GAVE, replace(B, is_heard=False)) == WAIT
    assert phase(after(hopeless, GAVE, B)) is MovePhase.ABANDONED
    assert phase(after(hopeless, GAVE, TOOK)) is MovePhase.RECIPIENT_ADOPTED


def test_a_recipient_that_was_removed_is_waited_for_a_moment() -> None:
    released = at(MovePhase.DONOR_RELEASED)
    away = replace(B, is_registered=False)
    assert after(released, GAVE, away) == WAIT
    assert phase(after(released, GAVE, replace(away, is_gone=True))) is MovePhase.ABANDONED


def test_quota_follows_with_adoption_as_far_as_the_donor_has_it() -> None:
    released = at(MovePhase.DONOR_RELEASED, tier=Tier.QUOTA)
    for has, shifted in ((9, 2), (1, 1), (0, 0)):
        context = replace(HERE, quotas={("p", "r"): {"a": has}})
        step = after(released, GAVE, TOOK, context=context).step
        assert step is not None
        assert step.shift == QuotaShift(("p", "r"), shifted)


def test_names_wait_while_they_would_be_taken_for_those_of_another_move() -> None:
    other = HeldTransfer("x", TransferEnd.RECIPIENT, ("m-1",))
    assert after(at(MovePhase.DONOR_RELEASED), GAVE, replace(B, held=(other,))) == WAIT
    larger = replace(other, machine_ids=("m-1", "m-9"))
    assert told(after(at(MovePhase.DONOR_RELEASED), GAVE, replace(B, held=(larger,))))


# -- afterwards --------------------------------------------------------------------------------


def test_the_donor_forgets_first_then_the_recipient_then_it_is_done() -> None:
    adopted = at(MovePhase.RECIPIENT_ADOPTED)
    assert told(after(adopted, GAVE, TOOK)) == [("a", "settle")]
    assert after(adopted, replace(A, is_heard=False), TOOK) == WAIT
    assert told(after(adopted, A, TOOK)) == [("b", "settle")]
    assert after(adopted, A, replace(B, is_heard=False)) == WAIT
    assert phase(after(adopted)) is MovePhase.DONE
    assert phase(after(adopted, replace(A, is_registered=False))) is MovePhase.DONE


def test_what_is_done_is_told_again_to_the_shard_that_still_holds_it() -> None:
    assert after(at(MovePhase.DONE)) == WAIT
    assert told(after(at(MovePhase.DONE), GAVE)) == [("a", "settle")]


def test_forgetting_waits_where_it_would_take_an_unfinished_move_along() -> None:
    both = replace(GAVE, held=(*GAVE.held, HeldTransfer("x", TransferEnd.DONOR, ("m-1",))))
    for other, expected in (
        (MovePhase.DONOR_RELEASED, []),
        (MovePhase.ABANDONED, []),
        (None, []),
        (MovePhase.RECIPIENT_ADOPTED, [("a", "settle")]),
    ):
        context = replace(HERE, phase_of=lambda _, other=other: other)  # type: ignore[misc]
        assert told(after(at(MovePhase.RECIPIENT_ADOPTED), both, context=context)) == expected


def test_what_is_abandoned_goes_back_to_the_donor_who_then_forgets_it() -> None:
    abandoned = at(MovePhase.ABANDONED)
    assert told(after(abandoned, GAVE)) == [("a", "back")]
    back = replace(GAVE, held=(*GAVE.held, HeldTransfer("m", TransferEnd.RECIPIENT, IDS)))
    assert told(after(abandoned, back)) == [("a", "forget")]
    assert after(abandoned) == WAIT


def test_a_recipient_that_came_back_with_the_machines_gives_them_up_first() -> None:
    abandoned = at(MovePhase.ABANDONED)
    assert told(after(abandoned, GAVE, TOOK)) == [("b", "back")]
    gave_up = replace(TOOK, held=(*TOOK.held, HeldTransfer("m", TransferEnd.DONOR, IDS)))
    assert told(after(abandoned, GAVE, gave_up)) == [("b", "forget")]
    gone = replace(A, is_registered=False, is_gone=True)
    assert told(after(abandoned, gone, TOOK)) == [("b", "settle")], "no other is there"


def test_a_row_from_before_the_machines_went_back_is_given_up_again() -> None:
    back = replace(GAVE, held=(*GAVE.held, HeldTransfer("m", TransferEnd.RECIPIENT, IDS)))
    gave_up = replace(TOOK, held=(*TOOK.held, HeldTransfer("m", TransferEnd.DONOR, IDS)))
    for old in (MovePhase.PLANNED, MovePhase.DONOR_RELEASED):
        assert phase(after(at(old), back)) is MovePhase.ABANDONED
        assert phase(after(at(old), A, gave_up)) is MovePhase.ABANDONED


# -- on the wire -------------------------------------------------------------------------------


def test_what_is_done_once_has_one_id_and_forgetting_has_a_new_one_each_time() -> None:
    for task in (MoveTask.PICK, MoveTask.DRAIN, MoveTask.GIVE, MoveTask.ADOPT, MoveTask.BACK):
        assert instruction_id(MOVE, MoveInstruction("a", task), lambda: "7-1") == f"m/{task}"
    for task in (MoveTask.SETTLE, MoveTask.FORGET):
        assert instruction_id(MOVE, MoveInstruction("a", task), lambda: "7-1") == f"m/{task}-7-1"


def test_names_always_come_with_both_ends() -> None:
    for tier in Tier:
        said = payload_of(replace(MOVE, tier=tier), MoveInstruction("b", MoveTask.ADOPT, IDS))
        assert said == pb.TransferOwnership(machine_ids=IDS, from_shard_id="a", to_shard_id="b")
    said = payload_of(MOVE, MoveInstruction("a", MoveTask.BACK, IDS))
    assert said == pb.TransferOwnership(machine_ids=IDS, from_shard_id="b", to_shard_id="a")


def test_each_tier_asks_in_its_own_words_for_the_same_machines() -> None:
    wish = replace(
        MOVE.wish, requirements=(("disk", 1, ("ssd",)),), min_unit=(("cpu", "2"),), priority=7
    )
    pick = payload_of(replace(MOVE, wish=wish), MoveInstruction("a", MoveTask.PICK))
    assert isinstance(pick, pb.TransferOwnership)
    slots = payload_of(
        replace(MOVE, wish=wish, tier=Tier.QUOTA), MoveInstruction("a", MoveTask.PICK)
    )
    assert isinstance(slots, pb.ReassignSpeculative)
    drain = payload_of(
        replace(MOVE, wish=wish, tier=Tier.PREEMPT), MoveInstruction("a", MoveTask.DRAIN)
    )
    assert isinstance(drain, pb.CrossShardDrain)
    assert (drain.preemptor_priority, drain.interruption_penalty_bucket) == (7, 1)
    for said in (pick, slots, drain):
        assert (said.count, said.instance_type, said.zone) == (2, "std", "z")
        assert (said.provider, said.region) == ("p", "r")
        assert said.requirements[0].values == ["ssd"]
        assert dict(said.min_unit.resources) == {"cpu": "2"}
