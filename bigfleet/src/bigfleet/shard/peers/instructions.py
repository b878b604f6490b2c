"""What the coordinator says, checked and done: fences first, each instruction once by its id.

An answer of a leadership older than one already heard is dropped whole, without a word to it. Of
the rest, assignments come first, then the instructions in the order they came, each with an
outcome that says what really happened. One that comes too early gets none: it is sent again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from bigfleet.shard.peers.errors import InvalidInstructionError, NotYetError
from bigfleet.shard.peers.moves import Moves
from bigfleet.shard.state.done_instructions import Done, DoneInstructions
from bigfleet.shard.state.ownership import Domain, Domains
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

DUPLICATE: Final = "duplicate-redelivery"
_log = logging.getLogger(__name__)
_Ack = pb.InstructAck


class DomainTable(Protocol):
    """The part of ownership that knows domains."""

    async def assign(self, domains: Domains) -> None:
        """The coordinator's whole table."""

    async def assign_domain(self, domain: Domain) -> None:
        """One more."""

    async def unassign_domain(self, domain: Domain) -> None:
        """One less."""


class InstructionMetrics(Protocol):
    """What is counted."""

    def coordinator_term(self, term: int) -> None:
        """The highest term seen."""

    def instruction(self, kind: str, outcome: str) -> None:
        """done, failed, stale_term or duplicate."""


class Instructions:
    """One shard's fences and what it does when told."""

    def __init__(
        self, domains: DomainTable, moves: Moves, remembered: DoneInstructions,
        counts: InstructionMetrics, on_assignments: Callable[[pb.ShardAssignments], None],
    ) -> None:  # fmt: skip
        """`on_assignments` gets clusters, quotas and providers; domains are dealt with here."""
        self._domains, self._moves, self._remembered = domains, moves, remembered
        self._counts, self._on_assignments = counts, on_assignments
        self.term = 0
        """The highest term heard since the process started."""
        self.revision = 0
        """Of the assignments held; 0 for none."""

    async def take(self, answer: pb.ReportAck) -> list[pb.InstructAck]:
        """Do what an answer says; what became of each instruction."""
        if 0 < answer.coordinator_term < self.term:
            self._drop(answer)
            return []
        self._note_term(answer.coordinator_term)
        if answer.HasField("assignments"):
            await self._assign(answer.assignments)
        acks: list[pb.InstructAck] = []
        for instruction in answer.instructions:
            ack = await self._one(instruction) if instruction.instruction_id else None
            if ack is not None:
                acks.append(ack)
        return acks

    async def _one(self, instruction: pb.CoordinatorInstruction) -> pb.InstructAck | None:
        name = instruction.instruction_id
        kind = instruction.WhichOneof("payload")
        done = self._remembered.get(name)
        if done is not None:
            self._count(kind, "duplicate")
            return _ack(name, _Ack.OUTCOME_ACCEPTED, DUPLICATE, done.machine_ids)
        if instruction.coordinator_term < self.term:
            self._complain(instruction.coordinator_term, name)
            self._count(kind, "stale_term")
            return _ack(
                name,
                _Ack.OUTCOME_REJECTED_STALE,
                f"term {instruction.coordinator_term} is over: {self.term} was heard",
            )
        self._note_term(instruction.coordinator_term)
        try:
            done = await self._carry_out(instruction)
            await self._remembered.add(done)
        except NotYetError as error:
            _log.info("instruction waits: %s", error, extra={"instruction": name})
            return None
        except InvalidInstructionError as error:
            self._count(kind, "failed")
            return _ack(name, _Ack.OUTCOME_REJECTED_INVALID, str(error))
        except Exception as error:  # noqa: BLE001 - whatever went wrong is the outcome
            _log.warning(
                "instruction failed: %s", error, extra={"instruction": name, "kind": kind or ""}
            )
            self._count(kind, "failed")
            return _ack(name, _Ack.OUTCOME_FAILED, str(error) or type(error).__name__)
        self._count(kind, "done")
        return _ack(name, _Ack.OUTCOME_ACCEPTED, "", done.machine_ids)

    async def _carry_out(self, instruction: pb.CoordinatorInstruction) -> Done:
        name = instruction.instruction_id
        match instruction.WhichOneof("payload"):
            case "assign_domain":
                await self._domains.assign_domain(_domain(instruction.assign_domain))
                return Done(name)
            case "unassign_domain":
                await self._domains.unassign_domain(_domain(instruction.unassign_domain))
                return Done(name)
            case "reassign_speculative":
                return await self._moves.reassign(name, instruction.reassign_speculative)
            case "cross_shard_drain":
                return await self._moves.drain(name, instruction.cross_shard_drain)
            case "transfer_ownership":
                return await self._moves.transfer(name, instruction.transfer_ownership)
            case _:
                raise InvalidInstructionError("this release does not know what is asked for")

    async def _assign(self, assignments: pb.ShardAssignments) -> None:
        await self._domains.assign(
            Domains(
                _named(assignments.domains),
                _named(assignments.foreign_domains),
                assignments.is_default,
                assignments.revision,
                tuple(assignments.topology_keys),
            )
        )
        self._on_assignments(assignments)
        self.revision = assignments.revision

    def _note_term(self, term: int) -> None:
        if term > self.term:
            self.term = term
            self._counts.coordinator_term(term)

    def _drop(self, answer: pb.ReportAck) -> None:
        self._complain(answer.coordinator_term, "")
        for instruction in answer.instructions:
            self._count(instruction.WhichOneof("payload"), "stale_term")

    def _complain(self, term: int, instruction: str) -> None:
        _log.error(
            "coordinator term validation failed",
            extra={"term": term, "highest": self.term, "instruction": instruction},
        )

    def _count(self, kind: str | None, outcome: str) -> None:
        if kind is not None:
            self._counts.instruction(kind, outcome)


class _DomainFields(Protocol):
    @property
    def topology_key(self) -> str: ...
    @property
    def topology_value(self) -> str: ...


def _named(entries: Iterable[pb.DomainAssignment]) -> frozenset[Domain]:
    """Domains of a table; an entry that names none belongs to no shard."""
    return frozenset(
        (one.topology_key, one.topology_value)
        for one in entries
        if one.topology_key and one.topology_value
    )


def _domain(fields: _DomainFields) -> Domain:
    if not fields.topology_key or not fields.topology_value:
        raise InvalidInstructionError(
            f"domain {fields.topology_key!r}={fields.topology_value!r}: name a key and a value"
        )
    return (fields.topology_key, fields.topology_value)


def _ack(
    name: str,
    outcome: pb.InstructAck.Outcome.ValueType,
    reason: str,
    machine_ids: tuple[str, ...] = (),
) -> pb.InstructAck:
    return pb.InstructAck(
        instruction_id=name, outcome=outcome, reason=reason, machine_ids=machine_ids
    )
