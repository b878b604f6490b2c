"""The rules of moves between shards: phases go forward, and are told as often as one likes.

    planned -> donor_released -> recipient_adopted -> done
    any of them -> abandoned

A fail-over or a repeated acknowledgement tells a step again; that changes nothing. When machines of
a pool go together with the right to hold them, both quota slices change in the same transaction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bigfleet.coordinator.state.changes import Changes, Deletion, Put
from bigfleet.coordinator.state.commands import ForgetMoves, PlanMoves, QuotaShift, StepMove
from bigfleet.coordinator.state.errors import (
    AlreadyAssignedError,
    InvalidCommandError,
    RefusalError,
    UnknownEntryError,
)
from bigfleet.coordinator.state.tables import FleetState
from bigfleet.coordinator.state.values import Move, MovePhase

_ORDER: Final = (
    MovePhase.PLANNED,
    MovePhase.DONOR_RELEASED,
    MovePhase.RECIPIENT_ADOPTED,
    MovePhase.DONE,
)


def plan(command: PlanMoves, state: FleetState, now: int) -> Changes:
    """Moves begin, all of them or none."""
    puts = []
    for move in command.moves:
        if move.id in state.moves:
            raise AlreadyAssignedError(f"there is a move {move.id!r} already: choose another id")
        if not move.id or move.donor == move.recipient or move.count < 1:
            raise InvalidCommandError(
                f"move {move.id!r} of {move.count} machines from {move.donor!r} to "
                f"{move.recipient!r} makes no sense"
            )
        for shard in (move.donor, move.recipient):
            if shard not in state.shards:
                raise UnknownEntryError(f"move {move.id!r}: no shard {shard!r} is registered")
        begun = replace(move, phase=MovePhase.PLANNED, created_at=now, updated_at=now)
        puts.append(Put("moves", move.id, begun))
    return Changes(tuple(puts))


def step(command: StepMove, state: FleetState, now: int) -> Changes:
    move = state.moves.get(command.move_id)
    if move is None:
        raise UnknownEntryError(
            f"there is no move {command.move_id!r}: it was forgotten, or never was"
        )
    stepped = replace(
        move,
        phase=command.phase,
        machine_ids=command.machine_ids or move.machine_ids,
        tries=command.tries,
        reason=command.reason or move.reason,
    )
    if stepped == move:
        return Changes()
    _check(move, command.phase)
    puts = [Put("moves", move.id, replace(stepped, updated_at=now))]
    if command.shift is not None and command.phase is not move.phase:
        puts += _shifted(state, move, command.shift)
    return Changes(tuple(puts))


def forget(command: ForgetMoves, state: FleetState) -> Changes:
    """Moves that are over leave the table."""
    deletions = []
    for move_id in dict.fromkeys(command.move_ids):
        move = state.moves.get(move_id)
        if move is None:
            continue
        if not move.phase.is_over:
            raise RefusalError(f"move {move_id!r} is {move.phase}: only one that is over can go")
        deletions.append(Deletion("moves", move_id))
    return Changes(deletions=tuple(deletions))


def _check(move: Move, phase: MovePhase) -> None:
    if move.phase.is_over:
        raise RefusalError(f"move {move.id!r} is {move.phase}: it cannot become {phase}")
    if phase is not MovePhase.ABANDONED and _ORDER.index(phase) < _ORDER.index(move.phase):
        raise RefusalError(f"move {move.id!r} is {move.phase}: it cannot go back to {phase}")


def _shifted(state: FleetState, move: Move, shift: QuotaShift) -> list[Put]:
    """The two slices afterwards; nothing where there is no allocation, hence no limit."""
    slices = state.quotas.get(shift.pool)
    if slices is None:
        return []
    has = slices.get(move.donor, 0)
    if not 0 <= shift.count <= has:
        raise InvalidCommandError(
            f"move {move.id!r}: {shift.count} slots cannot leave {move.donor!r}, which has {has}"
        )
    after = dict(slices)
    after[move.donor] = has - shift.count
    after[move.recipient] = after.get(move.recipient, 0) + shift.count
    return [Put("quotas", shift.pool, dict(sorted(after.items())))]
