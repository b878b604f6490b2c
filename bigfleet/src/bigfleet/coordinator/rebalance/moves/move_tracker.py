"""What a leader knows of moves beyond their rows: what it has told, what it was told, since when.

All of it may be lost: the next leader finds the rows and what shards hold, and begins from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bigfleet.coordinator.leadership.leader_state import LeaderState
from bigfleet.coordinator.rebalance import rules
from bigfleet.coordinator.rebalance.moves.advance import (
    HeldTransfer,
    MoveContext,
    MoveInstruction,
    MoveReply,
    MoveSide,
    MoveTask,
    TransferEnd,
    advance,
)
from bigfleet.coordinator.rebalance.moves.instruction_texts import instruction_id, payload_of
from bigfleet.coordinator.reports.instructions import EndedInstruction
from bigfleet.coordinator.reports.report_cache import ReceivedReport
from bigfleet.coordinator.state import Move, MovePhase, Tier
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

DUPLICATE: Final = "duplicate-redelivery"
_Ack = pb.InstructAck
_ENDS: Final = {
    pb.HeldTransfer.ROLE_DONOR: TransferEnd.DONOR,
    pb.HeldTransfer.ROLE_RECIPIENT: TransferEnd.RECIPIENT,
}
_NOT_WITH: Final = {MoveTask.PICK: MoveTask.GIVE, MoveTask.GIVE: MoveTask.PICK}
"""A donor that picked the very machines it is told to give next would forget having picked them."""
_Life = tuple[int, int]
"""Epoch and number of a report."""


@dataclass(frozen=True, slots=True)
class _SentInstruction:
    """An instruction that a shard has not answered."""

    task: MoveTask
    instruction_id: str
    machine_ids: tuple[str, ...]


class MoveTracker:
    """One leadership's moves under way."""

    def __init__(self, leader_state: LeaderState) -> None:
        self.leader_state = leader_state
        self.released: set[str] = set()
        """Moves whose donor let go under this leadership."""
        self._began = leader_state.clock.monotonic()
        self._minted = 0
        self._held: dict[str, tuple[HeldTransfer, ...]] = {}
        self._holders_now: Mapping[str, Sequence[tuple[str, HeldTransfer]]] | None = None
        self._words: dict[str, list[MoveReply]] = {}
        self._sent: dict[tuple[str, str], _SentInstruction] = {}
        self._not_before: dict[tuple[str, str], float] = {}
        self._offered: dict[str, _Life] = {}
        self._missing_since: dict[str, float] = {}

    def mint(self) -> str:
        """Text that no leader has used or will use."""
        self._minted += 1
        return f"{self.leader_state.term}-{self._minted}"

    # -- what shards say -------------------------------------------------------------------------

    def reported(self, report: ReceivedReport) -> bool:
        """A shard's report: what it holds now. Whether that matters to any move."""
        before = self._held.get(report.shard_id)
        held = tuple(
            HeldTransfer(one.move_id, _ENDS[one.role], tuple(one.machine_ids))
            for one in report.transfers
            if one.role in _ENDS and one.move_id and one.machine_ids
        )
        self._held[report.shard_id] = held
        self._holders_now = None
        self._look_again(report.shard_id)
        return bool(held) or held != before

    def _look_again(self, shard: str) -> None:
        """Withdraw what a report has overtaken, before the answer to it carries it.

        Naming machines means another thing to a shard that holds them already.
        """
        for key, sent in list(self._sent.items()):
            move = self.leader_state.state.moves.get(key[0])
            if key[1] != shard or move is None:
                continue
            verdict = advance(
                move,
                self.side(move.donor, move),
                self.side(move.recipient, move),
                (),
                self.context(move),
            )
            if MoveInstruction(shard, sent.task, sent.machine_ids) not in verdict.orders:
                self.leader_state.instructions.withdraw(shard, sent.instruction_id)
                self._forget_told(key)

    def acknowledged(self, ended: EndedInstruction) -> bool:
        """How an instruction went; whether it was about a move."""
        shard, name = ended.pending.shard_id, ended.pending.id
        key = (name.rpartition("/")[0], shard)
        sent = self._sent.get(key)
        if sent is None or sent.instruction_id != name:
            return False
        is_refused = not ended.is_accepted and ended.outcome != _Ack.OUTCOME_REJECTED_STALE
        if is_refused:
            pause = rules.DRAIN_RETRY_SECONDS if sent.task is MoveTask.GIVE else rules.RETRY_SECONDS
            self._not_before[key] = self.leader_state.clock.monotonic() + pause
        if sent.task is MoveTask.GIVE and not ended.is_gone:
            # Still draining, most likely: no use asking again with every answer.
            self.leader_state.instructions.withdraw(shard, name)
        elif not ended.is_gone:
            return False
        self._forget_told(key)
        if ended.is_accepted or is_refused:
            self._words.setdefault(key[0], []).append(
                MoveReply(
                    sent.task,
                    ended.is_accepted,
                    ended.reason == DUPLICATE,
                    ended.machine_ids,
                    ended.reason,
                )
            )
        return True

    def take_words(self, move_id: str) -> list[MoveReply]:
        """What was said about a move, once."""
        return self._words.pop(move_id, [])

    def put_back(self, move_id: str, words: list[MoveReply]) -> None:
        """It could not be acted on."""
        if words:
            self._words[move_id] = [*words, *self._words.get(move_id, [])]

    # -- how things stand ------------------------------------------------------------------------

    def looked_at(self) -> list[Move]:
        """Moves that are not over, or that a shard holds although they are."""
        rows = self.leader_state.state.moves
        holders = self._holders()
        known = [
            move
            for move in rows.values()
            if not move.phase.is_over or move.id in holders or self._is_told(move)
        ]
        return [*known, *self._strays(holders)]

    def is_held(self, move_id: str) -> bool:
        """Whether a shard holds anything of a move."""
        return move_id in self._holders()

    def side(self, shard: str, move: Move) -> MoveSide:
        """One end of a move."""
        report = self.leader_state.reports.get(shard)
        is_registered = shard in self.leader_state.state.shards
        waited = self.leader_state.clock.monotonic() - self._began
        offered = self._offered.get(move.id)
        return MoveSide(
            shard=shard,
            is_registered=is_registered,
            is_gone=not is_registered and self._is_gone(shard),
            is_heard=report is not None,
            is_silent=report is None and waited > rules.SILENT_SECONDS,
            is_clear=offered is None or (report is not None and _life(report) > offered),
            held=self._held.get(shard, ()),
        )

    def context(self, move: Move) -> MoveContext:
        """What else counts for a move."""
        state = self.leader_state.state
        return MoveContext(
            now=self.leader_state.clock.now(),
            released_here=move.id in self.released,
            phase_of=lambda name: state.moves[name].phase if name in state.moves else None,
            is_free=lambda ids: self._is_free(ids, move),
            quotas=state.quotas,
        )

    def _is_free(self, machine_ids: Iterable[str], move: Move) -> bool:
        named = set(machine_ids)
        return not any(
            named.intersection(other.machine_ids)
            for other in self.leader_state.state.moves.values()
            if other.id != move.id and not other.phase.is_over
        )

    def _holders(self) -> Mapping[str, Sequence[tuple[str, HeldTransfer]]]:
        """Per move, who holds what of it."""
        if self._holders_now is None:
            holders: dict[str, list[tuple[str, HeldTransfer]]] = {}
            for shard in sorted(self._held):
                for held in self._held[shard]:
                    holders.setdefault(held.move_id, []).append((shard, held))
            self._holders_now = holders
        return self._holders_now

    def _is_told(self, move: Move) -> bool:
        return any((move.id, shard) in self._sent for shard in (move.donor, move.recipient))

    def _is_gone(self, shard: str) -> bool:
        if not shard:
            return True
        now = self.leader_state.clock.monotonic()
        return now - self._missing_since.setdefault(shard, now) > rules.GONE_SECONDS

    def watch_registry(self) -> None:
        """Note who is not there any more, and who is back."""
        registered = self.leader_state.state.shards
        now = self.leader_state.clock.monotonic()
        for move in self.leader_state.state.moves.values():
            for shard in (move.donor, move.recipient):
                if shard not in registered:
                    self._missing_since.setdefault(shard, now)
        for shard in [one for one in self._missing_since if one in registered]:
            del self._missing_since[shard]
        # A shard that was removed is forgotten with what it said.
        for shard in [one for one in self._held if self.leader_state.reports.get(one) is None]:
            del self._held[shard]
            self._holders_now = None

    def _strays(self, holders: Mapping[str, Sequence[tuple[str, HeldTransfer]]]) -> Iterator[Move]:
        """Moves of which there is no row, as what is held lets one tell.

        The donor of a move forgets first. So where a recipient holds it, it was adopted; where only
        a donor does, and everybody has been heard, no shard has the machines and they go back.
        """
        state, reports = self.leader_state.state, self.leader_state.reports
        is_all_heard = all(reports.get(shard) is not None for shard in state.shards)
        for move_id in sorted(holders.keys() - state.moves.keys()):
            ends: dict[TransferEnd, dict[str, HeldTransfer]] = {
                TransferEnd.DONOR: {},
                TransferEnd.RECIPIENT: {},
            }
            for shard, held in holders[move_id]:
                ends[held.end][shard] = held
            both = sorted(ends[TransferEnd.DONOR].keys() & ends[TransferEnd.RECIPIENT].keys())
            takers = [shard for shard in ends[TransferEnd.RECIPIENT] if shard not in both]
            givers = [shard for shard in ends[TransferEnd.DONOR] if shard not in both]
            stray = Move(move_id, Tier.IDLE, "", "", 1, phase=MovePhase.ABANDONED)
            if takers:
                donor = givers[0] if givers else ""
                yield replace(stray, donor=donor, recipient=takers[0], phase=MovePhase.DONE)
            elif is_all_heard or both:
                for shard in [*both, *(givers if is_all_heard and not both else ())]:
                    yield replace(stray, donor=shard)

    # -- telling ---------------------------------------------------------------------------------

    def tell(self, move: Move, orders: Iterable[MoveInstruction]) -> None:
        """Have exactly these instructions of a move wait for their shards."""
        wanted = {order.shard: order for order in orders}
        for shard in {move.donor, move.recipient}:
            self._tell_shard(move, shard, wanted.get(shard))

    def _tell_shard(self, move: Move, shard: str, order: MoveInstruction | None) -> None:
        key, queue = (move.id, shard), self.leader_state.instructions
        sent = self._sent.get(key)
        if sent is not None and queue.find(shard, sent.instruction_id) is None:
            # The queue was dropped with its shard.
            self._forget_told(key)
            sent = None
        if sent is not None:
            if order is not None and (sent.task, sent.machine_ids) == (
                order.task,
                order.machine_ids,
            ):
                return
            queue.withdraw(shard, sent.instruction_id)
            self._forget_told(key)
        if order is None or shard not in self.leader_state.state.shards:
            return
        if self.leader_state.clock.monotonic() < self._not_before.get(key, 0.0):
            return
        other = _NOT_WITH.get(order.task)
        if other and any(one[1] == shard and it.task is other for one, it in self._sent.items()):
            return
        name = instruction_id(move, order, self.mint)
        queue.give(shard, payload_of(move, order), name)
        self._sent[key] = _SentInstruction(order.task, name, order.machine_ids)

    def _forget_told(self, key: tuple[str, str]) -> None:
        sent = self._sent.pop(key)
        if sent.task is MoveTask.ADOPT:
            # The last answer may have carried it: only a later report says what came of it.
            report = self.leader_state.reports.get(key[1])
            self._offered[key[0]] = _life(report) if report is not None else (0, 0)

    def forget(self, move_ids: Iterable[str]) -> None:
        """Moves that left the table."""
        gone = set(move_ids)
        self.released -= gone
        for move_id in gone:
            self._words.pop(move_id, None)
            self._offered.pop(move_id, None)
        self._not_before = {k: v for k, v in self._not_before.items() if k[0] not in gone}


def _life(report: ReceivedReport) -> _Life:
    return (report.epoch, report.cycle)
