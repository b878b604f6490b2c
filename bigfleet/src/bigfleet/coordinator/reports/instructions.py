"""What shards are told until they say how it went: a queue per shard, in the leader's memory.

An instruction is repeated with every answer until it is acknowledged. Done, or refused because its
term is over, it leaves the queue; failed, it is tried three times and then leaves it too, with a
warning. What follows from an ending is left to the giver of the instruction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

MOST_TRIES: Final = 3
_Ack = pb.InstructAck
_log = logging.getLogger(__name__)

Payload = (
    pb.AssignDomain
    | pb.UnassignDomain
    | pb.ReassignSpeculative
    | pb.CrossShardDrain
    | pb.TransferOwnership
)


@dataclass(frozen=True, slots=True)
class PendingInstruction:
    """An instruction that is not acknowledged."""

    shard_id: str
    instruction: pb.CoordinatorInstruction
    enqueued_at: int
    about: str = ""
    """What it is about; a later one about the same takes its place."""
    tries: int = 0
    last_outcome: pb.InstructAck.Outcome.ValueType = _Ack.OUTCOME_UNSPECIFIED
    last_reason: str = ""

    @property
    def id(self) -> str:
        """Its name."""
        return self.instruction.instruction_id


@dataclass(frozen=True, slots=True)
class EndedInstruction:
    """An acknowledgement of an instruction that was pending."""

    pending: PendingInstruction
    """As it is afterwards: with the try that failed, if it did."""
    outcome: pb.InstructAck.Outcome.ValueType
    machine_ids: tuple[str, ...] = ()
    """What the donor picked."""
    reason: str = ""
    is_gone: bool = field(default=True)
    """Whether it left the queue. A failed one stays until it was tried often enough."""

    @property
    def is_accepted(self) -> bool:
        """Whether it was done."""
        return self.outcome == _Ack.OUTCOME_ACCEPTED


class InstructionQueue:
    """The queues of one leadership."""

    def __init__(
        self, term: int, now: Callable[[], int], count: Callable[[str, int], None]
    ) -> None:
        """`count` is told how many wait for a shard."""
        self._term, self._now, self._count = term, now, count
        self._sequence = 0
        self._queues: dict[str, dict[str, PendingInstruction]] = {}
        self._about: dict[tuple[str, str], str] = {}
        """Shard and what it is about -> the id of the last instruction about it."""

    def give(
        self, shard_id: str, payload: Payload, instruction_id: str = "", about: str = ""
    ) -> str:
        """Tell a shard something; the instruction's id. The same id again overwrites."""
        self._sequence += 1
        name = instruction_id or f"i-{self._term}-{self._sequence}"
        instruction = pb.CoordinatorInstruction(
            coordinator_term=self._term,
            sequence_number=self._sequence,
            instruction_id=name,
            **{_FIELDS[type(payload)]: payload},  # type: ignore[arg-type]
        )
        queue = self._queues.setdefault(shard_id, {})
        if about:
            queue.pop(self._about.get((shard_id, about), ""), None)
            self._about[shard_id, about] = name
        # To the end, where its new number belongs.
        queue.pop(name, None)
        queue[name] = PendingInstruction(shard_id, instruction, self._now(), about)
        self._count(shard_id, len(queue))
        return name

    def pending(self, shard_id: str) -> list[pb.CoordinatorInstruction]:
        """What a shard is to be told, by sequence number."""
        return [one.instruction for one in self._queues.get(shard_id, {}).values()]

    def find(self, shard_id: str, instruction_id: str) -> PendingInstruction | None:
        """One instruction that waits."""
        return self._queues.get(shard_id, {}).get(instruction_id)

    def __iter__(self) -> Iterator[PendingInstruction]:
        """All that wait, by shard, then sequence number."""
        for shard_id in sorted(self._queues):
            yield from self._queues[shard_id].values()

    def withdraw(self, shard_id: str, instruction_id: str) -> None:
        """It is not wanted any more."""
        queue = self._queues.get(shard_id, {})
        pending = queue.pop(instruction_id, None)
        if pending is not None:
            self._let_go(pending)
            self._count(shard_id, len(queue))

    def forget(self, shard_id: str) -> None:
        """A shard is no more."""
        for pending in self._queues.pop(shard_id, {}).values():
            self._let_go(pending)

    def keep(self, registered: Collection[str]) -> None:
        """Forget all others."""
        for shard_id in self._queues.keys() - set(registered):
            self.forget(shard_id)

    def acknowledged(self, shard_id: str, ack: pb.InstructAck) -> EndedInstruction | None:
        """A shard says how one went; None for one that does not wait for it."""
        queue = self._queues.get(shard_id, {})
        pending = queue.get(ack.instruction_id)
        if pending is None:
            return None
        outcome, picked = ack.outcome, tuple(ack.machine_ids)
        if outcome in (_Ack.OUTCOME_ACCEPTED, _Ack.OUTCOME_REJECTED_STALE):
            del queue[pending.id]
            ended = EndedInstruction(pending, outcome, picked, ack.reason)
        else:
            ended = self._failed(queue, pending, ack)
        if ended.is_gone:
            self._let_go(pending)
        self._count(shard_id, len(queue))
        return ended

    def _let_go(self, pending: PendingInstruction) -> None:
        about = (pending.shard_id, pending.about)
        if self._about.get(about) == pending.id:
            del self._about[about]

    def _failed(
        self, queue: dict[str, PendingInstruction], pending: PendingInstruction, ack: pb.InstructAck
    ) -> EndedInstruction:
        # A word of a newer release, or none at all, is read as failed.
        invalid = ack.outcome == _Ack.OUTCOME_REJECTED_INVALID
        outcome = _Ack.OUTCOME_REJECTED_INVALID if invalid else _Ack.OUTCOME_FAILED
        failed = replace(
            pending, tries=pending.tries + 1, last_outcome=outcome, last_reason=ack.reason
        )
        is_gone = failed.tries >= MOST_TRIES
        if is_gone:
            del queue[pending.id]
        else:
            queue[pending.id] = failed
        _log.warning(
            "instruction dropped" if is_gone else "instruction failed; will be delivered again",
            extra={
                "shard": pending.shard_id,
                "instruction": pending.id,
                "kind": pending.instruction.WhichOneof("payload"),
                "tries": failed.tries,
                "outcome": _Ack.Outcome.Name(outcome),
                "reason": ack.reason,
            },
        )
        return EndedInstruction(failed, outcome, (), ack.reason, is_gone)


_FIELDS: Final[dict[type[Payload], str]] = {
    pb.AssignDomain: "assign_domain",
    pb.UnassignDomain: "unassign_domain",
    pb.ReassignSpeculative: "reassign_speculative",
    pb.CrossShardDrain: "cross_shard_drain",
    pb.TransferOwnership: "transfer_ownership",
}
