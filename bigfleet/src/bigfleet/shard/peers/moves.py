"""Machines that change their shard, as this shard sees it.

A donor is asked to pick machines, or is told which: it stops owning them, in a file, before it
says so. A recipient is told which, and owns exactly those. Naming machines again to a shard that
has done its part tells it that the move is settled, so that it stops reporting it. A crash at any
point leaves each machine with one owner, because each step is on disk before the next one begins
and every step can be repeated.

The id of a move is what stands before the last slash of an instruction's id (`m-7/pick`,
`m-7/adopt`), or the whole of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from bigfleet.model import MachineState
from bigfleet.model.columns import MachineColumns
from bigfleet.model.lifecycle import ALLOCATABLE
from bigfleet.observe.process import Clock
from bigfleet.shard.errors import DrainRefusedError
from bigfleet.shard.peers import promises
from bigfleet.shard.peers.donations import MachineFilter, free_machines, victims
from bigfleet.shard.peers.errors import InvalidInstructionError, MoveError, NotYetError
from bigfleet.shard.state.done_instructions import Done, DoneInstructions
from bigfleet.shard.state.ownership import Transfer, TransferRole
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

S = MachineState
_OTHERS: Final = 100
"""Victims that are tried in place of those that cannot be drained now."""


class MovableMachines(promises.ReservableMachines, Protocol):
    """The part of the book that moves need."""

    def mark_busy(self, machine_id: str) -> bool:
        """Keep others off it."""

    def free(self, machine_id: str) -> object:
        """Let others at it again."""

    def vanish(self, machine_id: str) -> object:
        """It is not this shard's any more."""


class OwnershipRecord(Protocol):
    """The part of ownership that moves need."""

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """What is not settled."""

    async def give(self, move_id: str, machine_ids: Iterable[str]) -> None:
        """Another shard's from now on."""

    async def receive(self, move_id: str, machine_ids: Iterable[str]) -> None:
        """This shard's from now on."""

    async def settle(self, move_id: str) -> None:
        """Need not be reported any more."""


Preempt = Callable[[str, int], None]
"""Begins the drain of a machine for demand of this priority, or raises DrainRefusedError."""


def move_of(instruction_id: str) -> str:
    """The move an instruction belongs to."""
    return instruction_id.rpartition("/")[0] or instruction_id


class Moves:
    """Carries out the three instructions that move machines."""

    def __init__(
        self, shard_id: str, machines: MovableMachines, fleet: Callable[[], MachineColumns],
        owner: OwnershipRecord, remembered: DoneInstructions, preempt: Preempt, clock: Clock,
        transferred: Callable[[str, int], None], unheard: Callable[[], Sequence[str]] = tuple,
    ) -> None:  # fmt: skip
        """`transferred` counts machines that went `in` or `out`; `unheard` are the providers
        whose machines are not known yet."""
        self._shard_id = shard_id
        self._machines, self._fleet, self._owner = machines, fleet, owner
        self._remembered, self._preempt = remembered, preempt
        self._transferred, self._unheard = transferred, unheard
        self.promises = promises.Promises(machines, clock, remembered.promised())

    async def transfer(self, instruction_id: str, instruction: pb.TransferOwnership) -> Done:
        """Idle machines go from one shard to another."""
        role = self._role(instruction.from_shard_id, instruction.to_shard_id)
        if instruction.machine_ids:
            return await self._named(
                instruction_id, role, tuple(dict.fromkeys(instruction.machine_ids))
            )
        _check_count(instruction.count)
        if role is TransferRole.RECIPIENT:
            raise InvalidInstructionError(
                "a recipient was asked to pick: name the machines the donor picked"
            )
        return await self._pick(
            instruction_id, MachineFilter.of(instruction), instruction.count, S.IDLE
        )

    async def reassign(self, instruction_id: str, instruction: pb.ReassignSpeculative) -> Done:
        """Speculative machines go to another shard, or come from one."""
        if not instruction.machine_ids:
            _check_count(instruction.count)
            return await self._pick(
                instruction_id, MachineFilter.of(instruction), instruction.count, S.SPECULATIVE
            )
        ids, move = tuple(dict.fromkeys(instruction.machine_ids)), move_of(instruction_id)
        # Nothing says who gives: it is who has them, or had them when this move began.
        role = self._held_role(move, ids) or self._remembered.role_in(move)
        if role is None:
            has_some = any(self._machines.get(machine) is not None for machine in ids)
            role = TransferRole.DONOR if has_some else TransferRole.RECIPIENT
        return await self._named(instruction_id, role, ids)

    async def drain(self, instruction_id: str, instruction: pb.CrossShardDrain) -> Done:
        """Machines of lower priority are drained for another shard and kept for it.

        Only those whose drain is under way are named and promised.
        """
        if instruction.machine_ids:
            ids = list(dict.fromkeys(instruction.machine_ids))
            self._check_victims(ids, instruction.preemptor_priority)
            count = len(ids)
        else:
            _check_count(instruction.count)
            count = instruction.count
            found = victims(
                self._fleet(), MachineFilter.of(instruction), instruction.preemptor_priority,
                instruction.interruption_penalty_bucket,
            )  # fmt: skip
            ids = found[: count + _OTHERS]
            self._check_heard(instruction.provider, bool(ids))
        taken = self._drained(ids, count, instruction.preemptor_priority)
        until = self.promises.make(taken) if taken else 0
        return Done(instruction_id, move_of(instruction_id), None, tuple(taken), until)

    # -- giving and taking -----------------------------------------------------------------------

    async def _named(self, instruction_id: str, role: TransferRole, ids: tuple[str, ...]) -> Done:
        move = move_of(instruction_id)
        held = self._held(role, ids)
        for transfer in held:
            # Not remembered, it was interrupted: then this is the same step again, not the next.
            if self._remembered.role_in(transfer.move_id) is role:
                await self._owner.settle(transfer.move_id)
        if not held and self._remembered.role_in(move) is not role:
            if role is TransferRole.DONOR:
                await self._give(move, self._giveable(ids))
            else:
                await self._owner.receive(move, ids)
                self._transferred("in", len(ids))
        return Done(instruction_id, move, role, ids)

    async def _pick(
        self, instruction_id: str, wish: MachineFilter, count: int, state: MachineState
    ) -> Done:
        move = move_of(instruction_id)
        for transfer in self._owner.transfers:
            if transfer.move_id == move and transfer.role is TransferRole.DONOR:
                # Given before a crash, or to a leader that did not hear of it.
                return Done(instruction_id, move, TransferRole.DONOR, transfer.machine_ids)
        picked: list[str] = []
        for machine in free_machines(self._fleet(), wish, state):
            if len(picked) == count:
                break
            if self._still(machine, state) and self._machines.mark_busy(machine):
                picked.append(machine)
        self._check_heard(wish.provider, bool(picked))
        await self._give_held(move, picked)
        return Done(instruction_id, move, TransferRole.DONOR, tuple(picked))

    async def _give(self, move: str, ids: Sequence[str]) -> None:
        held: list[str] = []
        for machine in ids:
            if not self._machines.mark_busy(machine):
                self._let_go(held)
                raise MoveError(f"machine {machine!r} is being acted on: ask again")
            held.append(machine)
        await self._give_held(move, held)

    async def _give_held(self, move: str, ids: Sequence[str]) -> None:
        if not ids:
            return
        try:
            await self._owner.give(move, ids)
        except BaseException:
            self._let_go(ids)
            raise
        for machine in ids:
            self.promises.fulfil(machine)
            self._machines.vanish(machine)
        self._transferred("out", len(ids))

    def _let_go(self, ids: Iterable[str]) -> None:
        for machine in ids:
            self._machines.free(machine)

    def _giveable(self, ids: Iterable[str]) -> list[str]:
        """Those of this shard, all of them free; others are not its to give, which is as well."""
        mine = []
        for machine in ids:
            known = self._machines.get(machine)
            self._check_heard("", known is not None)
            if known is None:
                continue
            if known.state not in ALLOCATABLE or known.stamp is not None:
                raise MoveError(
                    f"machine {machine!r} is {known.state.title}"
                    f"{' and claimed' if known.stamp else ''}: only free machines can be given"
                )
            if known.excluded:
                raise MoveError(f"machine {machine!r} is excluded: include it first")
            mine.append(machine)
        return mine

    def _check_heard(self, provider: str, found: bool) -> None:
        """Nothing was found: that is an answer only when everything was there to be found."""
        missing = [] if found else [one for one in self._unheard() if provider in ("", one)]
        if missing:
            raise NotYetError(f"provider {', '.join(missing)} was not heard since the start")

    def _still(self, machine: str, state: MachineState) -> bool:
        """Whether a machine is as free as the columns said."""
        known = self._machines.get(machine)
        return known is not None and known.state is state and known.stamp is None

    # -- who is what -----------------------------------------------------------------------------

    def _role(self, donor: str, recipient: str) -> TransferRole:
        if (donor == self._shard_id) == (recipient == self._shard_id):
            raise InvalidInstructionError(
                f"a transfer from {donor!r} to {recipient!r} was sent to {self._shard_id!r}: "
                "exactly one end must be this shard"
            )
        return TransferRole.DONOR if donor == self._shard_id else TransferRole.RECIPIENT

    def _held(self, role: TransferRole, ids: tuple[str, ...]) -> list[Transfer]:
        """Unsettled transfers that these machines, taken together, name."""
        named = set(ids)
        return [
            transfer
            for transfer in self._owner.transfers
            if transfer.role is role and named.issuperset(transfer.machine_ids)
        ]

    def _held_role(self, move: str, ids: tuple[str, ...]) -> TransferRole | None:
        for transfer in self._owner.transfers:
            if transfer.move_id == move and set(ids) & set(transfer.machine_ids):
                return transfer.role
        return None

    # -- drains ----------------------------------------------------------------------------------

    def _drained(self, ids: Iterable[str], count: int, priority: int) -> list[str]:
        """The first so many of these whose drain is under way now; MoveError when none is."""
        taken: list[str] = []
        refused: DrainRefusedError | None = None
        for machine in ids:
            if len(taken) == count:
                break
            try:
                self._preempt(machine, priority)
            except DrainRefusedError as error:
                refused = error
            else:
                taken.append(machine)
        if refused is not None and not taken:
            raise MoveError(str(refused))
        return taken

    def _check_victims(self, ids: Iterable[str], priority: int) -> None:
        for machine in ids:
            known = self._machines.get(machine)
            if known is None:
                raise MoveError(f"machine {machine!r} is not this shard's")
            if known.state is not S.CONFIGURED:
                raise MoveError(f"machine {machine!r} is {known.state.title}, not Configured")
            if known.stamp is None or known.stamp.priority >= priority:
                raise MoveError(f"machine {machine!r} does not serve less than priority {priority}")
            if known.do_not_disrupt:
                raise MoveError(f"machine {machine!r} must not be disrupted")


def _check_count(count: int) -> None:
    if count <= 0:
        raise InvalidInstructionError("neither machines nor a count are named: nothing to do")
