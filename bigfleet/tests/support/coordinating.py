"""Shards as a coordinator sees them: real books, ownership and instructions, a disk in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from bigfleet.model import CapacityType, HostRef, Machine, MachineState, PenaltyBucket, Stamp
from bigfleet.model.columns import Symbols
from bigfleet.shard.errors import DrainRefusedError
from bigfleet.shard.machines.book import Book
from bigfleet.shard.peers.instructions import Instructions
from bigfleet.shard.peers.moves import Moves
from bigfleet.shard.state.done_instructions import DoneInstructions
from bigfleet.shard.state.ownership import OwnershipFile
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from clocks import HandClock

T = TypeVar("T")
S = MachineState


class DictDisk:
    """Files that outlive the shards that wrote them."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.fails = False

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def replace(self, name: str, content: bytes) -> None:
        if self.fails:
            raise OSError("no room left")
        self.files[name] = content

    def append(self, name: str, content: bytes) -> None:
        self.replace(name, self.files.get(name, b"") + content)


async def inline(function: Callable[[], T]) -> T:
    """Compute here and now."""
    return function()


class Slowly:
    """Computes while others have their turns; writes of one file must not overlap."""

    def __init__(self) -> None:
        self._computing = False

    async def __call__(self, function: Callable[[], T]) -> T:
        """The function's answer, some turns later."""
        assert not self._computing, "two write at once"
        self._computing = True
        try:
            for _ in range(3):
                await asyncio.sleep(0)
            answer = function()
            await asyncio.sleep(0)
            return answer
        finally:
            self._computing = False


class Tally:
    """What was counted."""

    def __init__(self) -> None:
        self.instructions: list[tuple[str, str]] = []
        self.reports: list[str] = []
        self.terms: list[int] = []
        self.moved: list[tuple[str, int]] = []

    def coordinator_term(self, term: int) -> None:
        self.terms.append(term)

    def coordinator_report(self, outcome: str) -> None:
        self.reports.append(outcome)

    def instruction(self, kind: str, outcome: str) -> None:
        self.instructions.append((kind, outcome))

    def machines_transferred(self, direction: str, count: int) -> None:
        self.moved.append((direction, count))


def machine(
    name: str,
    state: MachineState = S.IDLE,
    *,
    stamp: Stamp | None = None,
    zone: str = "z-a",
    kind: str = "std",
    cpu: int = 4_000,
    labels: dict[str, str] | None = None,
    idle_since_ns: int = 1,
    do_not_disrupt: bool = False,
    provider: str = "p",
    region: str = "r",
) -> Machine:
    """A machine of four CPUs."""
    bound = state in (S.CONFIGURING, S.CONFIGURED, S.DRAINING)
    return Machine(
        id=name,
        state=state,
        host=None if state is S.SPECULATIVE else HostRef("p", f"h-{name}"),
        provider=provider,
        region=region,
        cluster="c-1" if bound else "",
        instance_type=kind,
        zone=zone,
        capacity_type=CapacityType.ON_DEMAND,
        labels=labels or {},
        resources={"cpu": cpu},
        stamp=stamp,
        idle_since_ns=idle_since_ns if state is S.IDLE else 0,
        do_not_disrupt=do_not_disrupt,
    )


def stamp(priority: int = 0, interruption: int = 0, reclamation: int = 0) -> Stamp:
    """Of a need of cluster c-1."""
    return Stamp(
        "c-1", "shape", "", f"f-{priority}-{interruption}-{reclamation}", priority,
        PenaltyBucket(interruption), PenaltyBucket(reclamation), 1,
    )  # fmt: skip


class Shard:
    """The coordinating parts of one shard, on a disk that may be older than it."""

    def __init__(
        self,
        shard_id: str = "s-1",
        machines: Sequence[Machine] = (),
        disk: DictDisk | None = None,
        clock: HandClock | None = None,
    ) -> None:
        self.id = shard_id
        self.disk = disk or DictDisk()
        self.clock, self.tally = clock or HandClock(), Tally()
        self.book = Book(Symbols(), self.clock)
        self.ownership = OwnershipFile(self.disk, inline)
        self.ownership.load()
        self.remembered = DoneInstructions(self.disk, inline)
        self.remembered.load()
        self.unheard: list[str] = []
        """Providers of which it knows nothing yet."""
        self.preempted: list[tuple[str, int]] = []
        self.refusals: dict[str, DrainRefusedError] = {}
        """Machines that cannot be drained now, and why."""
        self.assigned: list[pb.ShardAssignments] = []
        self.moves = Moves(
            shard_id,
            self.book,
            self.book.snapshot,
            self.ownership,
            self.remembered,
            self._preempt,
            self.clock,
            self.tally.machines_transferred,
            lambda: self.unheard,
        )
        self.book.on_change.append(self.moves.promises.seen)
        self.instructions = Instructions(
            self.ownership, self.moves, self.remembered, self.tally, self.assigned.append
        )
        self.listed(machines)

    def listed(self, machines: Sequence[Machine]) -> None:
        """What the provider lists; the shard takes what it owns."""
        for one in machines:
            if self.ownership.owns(one):
                self.book.take(one)

    def _preempt(self, machine_id: str, priority: int) -> None:
        if machine_id in self.refusals:
            raise self.refusals[machine_id]
        self.preempted.append((machine_id, priority))
        self.book.leave(machine_id, None, final=True)

    async def told(
        self, *instructions: pb.CoordinatorInstruction, term: int = 1
    ) -> list[pb.InstructAck]:
        """What becomes of an answer with these instructions."""
        return await self.instructions.take(answer(*instructions, term=term))


def answer(*instructions: pb.CoordinatorInstruction, term: int = 1) -> pb.ReportAck:
    """An answer of the leader of a term."""
    return pb.ReportAck(coordinator_term=term, acknowledged=True, instructions=instructions)


def instruct(name: str, term: int = 1, /, **payload: object) -> pb.CoordinatorInstruction:
    """One instruction."""
    return pb.CoordinatorInstruction(
        coordinator_term=term, instruction_id=name, **payload  # type: ignore[arg-type]
    )  # fmt: skip


def transfer(
    name: str, ids: Sequence[str] = (), donor: str = "s-1", to: str = "s-2", **more: object
) -> pb.CoordinatorInstruction:
    """A transfer from s-1 to s-2, by name or to pick."""
    said = pb.TransferOwnership(
        machine_ids=ids, from_shard_id=donor, to_shard_id=to, **more  # type: ignore[arg-type]
    )  # fmt: skip
    return instruct(name, transfer_ownership=said)


def outcomes(acks: Sequence[pb.InstructAck]) -> list[str]:
    """Their names, short."""
    return [pb.InstructAck.Outcome.Name(ack.outcome).removeprefix("OUTCOME_") for ack in acks]
