"""How a move goes on: a function of its row, of what both sides hold, and of what they said.

    planned            the donor is asked to pick machines, or to drain some and then to give them
    donor_released     the donor holds them as given; the recipient is told their names
    recipient_adopted  the recipient holds them as taken; both are told to forget, the donor first
    done               no shard holds anything
    abandoned          the machines are the donor's: shards that still hold something are told so

What a shard holds is what it reports until it is told to forget, so every answer here can be given
again, by this leader or the next, and nothing depends on an acknowledgement having arrived. Two
orders matter. A recipient is told names only while the donor is known to have let go; and machines
go back only when the recipient is known not to have them, and cannot get them any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from bigfleet.coordinator.rebalance import rules
from bigfleet.coordinator.state import Move, MovePhase, Pool, QuotaShift, StepMove, Tier

_NS: Final = 1_000_000_000
_SETTLED: Final = (MovePhase.RECIPIENT_ADOPTED, MovePhase.DONE)


class MoveTask(StrEnum):
    """What a shard is told about a move."""

    PICK = "pick"
    DRAIN = "drain"
    GIVE = "give"
    """Give what was drained."""
    ADOPT = "adopt"
    SETTLE = "settle"
    """Named again, from donor to recipient: forget it."""
    BACK = "back"
    """Named from recipient to donor: they are the donor's after all."""
    FORGET = "forget"
    """The same, named again: forget it."""


class TransferEnd(StrEnum):
    """Which end of a transfer a shard says it was."""

    DONOR = "donor"
    RECIPIENT = "recipient"


@dataclass(frozen=True, slots=True)
class MoveInstruction:
    """Tell a shard."""

    shard: str
    task: MoveTask
    machine_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldTransfer:
    """A transfer that a shard has carried out and was not told to forget."""

    move_id: str
    end: TransferEnd
    machine_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MoveSide:
    """One of the two shards, as this leader knows it."""

    shard: str
    is_registered: bool = True
    is_gone: bool = False
    """Not registered, and not for a moment."""
    is_heard: bool = True
    """It has reported to this leader."""
    is_silent: bool = False
    """It has not reported to this leader, which has waited long enough."""
    is_clear: bool = True
    """It has reported since it was last told to adopt the machines of this move."""
    held: tuple[HeldTransfer, ...] = ()
    """Everything it holds, of other moves as well."""

    def has(self, move: Move, end: TransferEnd) -> tuple[str, ...]:
        """The machines it holds of a move at this end of it."""
        for held in self.held:
            if held.move_id == move.id and held.end is end:
                return held.machine_ids
        return ()


@dataclass(frozen=True, slots=True)
class MoveReply:
    """How an instruction went, said by the shard it was for."""

    task: MoveTask
    is_accepted: bool
    is_repeated: bool = False
    """It had been done before."""
    machine_ids: tuple[str, ...] = ()
    reason: str = ""


def _unknown_move(move_id: str) -> MovePhase | None:
    return None


def _is_free(machine_ids: Sequence[str]) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class MoveContext:
    """What else counts."""

    now: int
    released_here: bool = False
    """This leader has seen the donor let go."""
    phase_of: Callable[[str], MovePhase | None] = _unknown_move
    """Of other moves; None for an unknown one."""
    is_free: Callable[[Sequence[str]], bool] = _is_free
    """Whether no other move under way has any of these machines."""
    quotas: Mapping[Pool, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MoveAdvance:
    """What to write, or else what to tell; neither means to wait."""

    step: StepMove | None = None
    orders: tuple[MoveInstruction, ...] = ()


def advance(
    move: Move,
    donor: MoveSide,
    recipient: MoveSide,
    words: Sequence[MoveReply],
    context: MoveContext,
) -> MoveAdvance:
    """The next thing to do about a move."""
    has_them_back = donor.has(move, TransferEnd.RECIPIENT) or recipient.has(move, TransferEnd.DONOR)
    if has_them_back and move.phase in (MovePhase.PLANNED, MovePhase.DONOR_RELEASED):
        # The row is older than what happened: it comes from a snapshot.
        return _abandon(move, "it was abandoned before, by an earlier leader")
    match move.phase:
        case MovePhase.PLANNED:
            verdict = _planned(move, donor, recipient, words, context)
            return (
                MoveAdvance() if _is_given_up(verdict) and _may_know(donor, recipient) else verdict
            )
        case MovePhase.DONOR_RELEASED:
            return _released(move, donor, recipient, words, context)
        case MovePhase.RECIPIENT_ADOPTED | MovePhase.DONE:
            return _adopted(move, donor, recipient, context)
        case MovePhase.ABANDONED:
            return _abandoned(move, donor, recipient)


def _may_know(donor: MoveSide, recipient: MoveSide) -> bool:
    """Whether a shard that has not reported to this leader may say that a planned move advanced.

    A donor may have given the machines to an earlier leader, which did not live to write it down.
    A row from a snapshot may be older than the adoption: then the recipient knows.
    """
    is_donor_awaited = donor.is_registered and not donor.is_heard and not donor.is_silent
    return is_donor_awaited or (recipient.is_registered and not recipient.is_heard)


def _planned(
    move: Move,
    donor: MoveSide,
    recipient: MoveSide,
    words: Sequence[MoveReply],
    context: MoveContext,
) -> MoveAdvance:
    given = donor.has(move, TransferEnd.DONOR)
    if given:
        return _to(move, MovePhase.DONOR_RELEASED, machine_ids=given)
    if recipient.has(move, TransferEnd.RECIPIENT):
        # An old row again.
        return _adoption(move, recipient.has(move, TransferEnd.RECIPIENT), context)
    if not donor.is_registered or not recipient.is_registered:
        return _abandon(move, "one of the shards was removed")
    for word in words:
        verdict = _answered(move, word, context)
        if verdict is not None:
            return verdict
    patience = rules.DRAIN_SECONDS if move.tier is Tier.PREEMPT else rules.PICK_SECONDS
    if context.now - move.created_at > patience * _NS:
        return _abandon(move, "the donor did not give the machines in time")
    if move.tier is not Tier.PREEMPT:
        return MoveAdvance(orders=(MoveInstruction(donor.shard, MoveTask.PICK),))
    if not move.machine_ids:
        return MoveAdvance(orders=(MoveInstruction(donor.shard, MoveTask.DRAIN),))
    is_early = context.now - move.updated_at < rules.DRAINED_FIRST_SECONDS * _NS
    if is_early or not _is_clear_to_name(move.machine_ids, donor, TransferEnd.DONOR, move):
        return MoveAdvance()
    return MoveAdvance(orders=(MoveInstruction(donor.shard, MoveTask.GIVE, move.machine_ids),))


def _answered(move: Move, word: MoveReply, context: MoveContext) -> MoveAdvance | None:
    """What a donor's word means for a planned move of which it holds nothing."""
    match word.task:
        case MoveTask.PICK if word.is_accepted and word.machine_ids and not word.is_repeated:
            # A shard that does not report what it holds.
            return _to(move, MovePhase.DONOR_RELEASED, machine_ids=word.machine_ids)
        case MoveTask.PICK if word.is_accepted and word.machine_ids:
            return _abandon(move, "it was settled before, by an earlier leader")
        case MoveTask.DRAIN if word.is_accepted and word.machine_ids:
            if move.machine_ids == word.machine_ids:
                return None
            if not context.is_free(word.machine_ids):
                # A donor that was restarted does not know what it has promised.
                return _abandon(move, "the donor drained the same machine for another move")
            return _to(move, MovePhase.PLANNED, machine_ids=word.machine_ids)
        case MoveTask.PICK | MoveTask.DRAIN if word.is_accepted:
            return _abandon(move, "the donor had none to give")
        case MoveTask.PICK | MoveTask.DRAIN:
            return _abandon(move, f"the donor could not: {word.reason}")
        case MoveTask.GIVE if word.is_accepted:
            return _abandon(move, "the donor did not have the machines any more")
        case _:
            return None


def _released(
    move: Move,
    donor: MoveSide,
    recipient: MoveSide,
    words: Sequence[MoveReply],
    context: MoveContext,
) -> MoveAdvance:
    taken = recipient.has(move, TransferEnd.RECIPIENT)
    if taken or any(word.task is MoveTask.ADOPT and word.is_accepted for word in words):
        return _adoption(move, taken or move.machine_ids, context)
    if recipient.is_gone:
        return _abandon(move, "the recipient was removed; the machines go back")
    failed = [word for word in words if word.task is MoveTask.ADOPT]
    if failed:
        return _to(move, move.phase, tries=move.tries + 1, reason=failed[-1].reason)
    if move.tries >= rules.MOST_OFFERS:
        if recipient.is_heard and recipient.is_clear:
            return _abandon(move, f"the recipient cannot take the machines: {move.reason}")
        return MoveAdvance()
    given = donor.has(move, TransferEnd.DONOR)
    if donor.is_heard and not given and not context.released_here:
        # Only an earlier leader can have told the donor to forget it, at its end.
        if not recipient.is_heard:
            return MoveAdvance()
        return _abandon(move, "it was settled before, by an earlier leader")
    is_sure = bool(given) or context.released_here or donor.is_gone or donor.is_silent
    if not is_sure or not _is_clear_to_name(
        move.machine_ids, recipient, TransferEnd.RECIPIENT, move
    ):
        return MoveAdvance()
    if not recipient.is_registered:
        return MoveAdvance()
    return MoveAdvance(orders=(MoveInstruction(recipient.shard, MoveTask.ADOPT, move.machine_ids),))


def _adopted(move: Move, donor: MoveSide, recipient: MoveSide, context: MoveContext) -> MoveAdvance:
    """The donor forgets first: as long as it holds the move, so does a recipient that adopted."""
    given, taken = donor.has(move, TransferEnd.DONOR), recipient.has(move, TransferEnd.RECIPIENT)
    if given:
        return _settle(move, donor, TransferEnd.DONOR, given, context)
    if donor.is_registered and not donor.is_heard:
        return MoveAdvance()
    if taken:
        return _settle(move, recipient, TransferEnd.RECIPIENT, taken, context)
    if move.phase is MovePhase.DONE or (recipient.is_registered and not recipient.is_heard):
        return MoveAdvance()
    return _to(move, MovePhase.DONE)


def _settle(
    move: Move, side: MoveSide, end: TransferEnd, machine_ids: tuple[str, ...], context: MoveContext
) -> MoveAdvance:
    for other in _named_too(machine_ids, side, end, move):
        # It would be forgotten together with this one, which may be too early for it.
        if context.phase_of(other.move_id) not in _SETTLED:
            return MoveAdvance()
    return MoveAdvance(orders=(MoveInstruction(side.shard, MoveTask.SETTLE, machine_ids),))


def _abandoned(move: Move, donor: MoveSide, recipient: MoveSide) -> MoveAdvance:
    taken, gave_up = (
        recipient.has(move, TransferEnd.RECIPIENT),
        recipient.has(move, TransferEnd.DONOR),
    )
    if taken and donor.is_gone and not gave_up:
        # The donor is gone and cannot have them back.
        return MoveAdvance(orders=(MoveInstruction(recipient.shard, MoveTask.SETTLE, taken),))
    if taken and gave_up:
        return MoveAdvance(orders=(MoveInstruction(recipient.shard, MoveTask.FORGET, taken),))
    if taken:
        return _back(move, recipient, TransferEnd.DONOR, taken)
    given, returned = donor.has(move, TransferEnd.DONOR), donor.has(move, TransferEnd.RECIPIENT)
    if returned:
        return MoveAdvance(orders=(MoveInstruction(donor.shard, MoveTask.FORGET, returned),))
    return _back(move, donor, TransferEnd.RECIPIENT, given) if given else MoveAdvance()


def _back(
    move: Move, side: MoveSide, end: TransferEnd, machine_ids: tuple[str, ...]
) -> MoveAdvance:
    if not _is_clear_to_name(machine_ids, side, end, move):
        return MoveAdvance()
    return MoveAdvance(orders=(MoveInstruction(side.shard, MoveTask.BACK, machine_ids),))


def _adoption(move: Move, machine_ids: tuple[str, ...], context: MoveContext) -> MoveAdvance:
    shift = None
    if move.tier is Tier.QUOTA:
        pool = (move.wish.provider, move.wish.region)
        has = context.quotas.get(pool, {}).get(move.donor, 0)
        # The donor may have been given less meanwhile; it cannot lose what it has not.
        shift = QuotaShift(pool, min(len(machine_ids), has))
    return _to(move, MovePhase.RECIPIENT_ADOPTED, machine_ids=machine_ids, shift=shift)


def _is_clear_to_name(
    machine_ids: Sequence[str], side: MoveSide, end: TransferEnd, move: Move
) -> bool:
    """Whether naming machines to a shard will be taken as news.

    A shard that holds another transfer of machines that are all among them would take it as the
    word to forget that one, and do nothing else.
    """
    return bool(side.has(move, end)) or not _named_too(machine_ids, side, end, move)


def _named_too(
    machine_ids: Sequence[str], side: MoveSide, end: TransferEnd, move: Move
) -> list[HeldTransfer]:
    named = set(machine_ids)
    return [
        held
        for held in side.held
        if held.end is end and held.move_id != move.id and named.issuperset(held.machine_ids)
    ]


def _to(
    move: Move,
    phase: MovePhase,
    *,
    machine_ids: tuple[str, ...] = (),
    tries: int | None = None,
    reason: str = "",
    shift: QuotaShift | None = None,
) -> MoveAdvance:
    kept = move.tries if tries is None else tries
    return MoveAdvance(step=StepMove(move.id, phase, machine_ids, kept, reason, shift))


def _is_given_up(verdict: MoveAdvance) -> bool:
    return verdict.step is not None and verdict.step.phase is MovePhase.ABANDONED


def _abandon(move: Move, reason: str) -> MoveAdvance:
    return _to(move, MovePhase.ABANDONED, reason=reason)
