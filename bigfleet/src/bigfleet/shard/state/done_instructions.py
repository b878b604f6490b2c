"""Instructions done, so that each is done once.

All are remembered by the process. Those that named machines are also kept in a small file, because
the answer to one that is delivered again after a restart names the same machines, and because an
instruction that names machines to a shard that once gave them away must not make it take them back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from bigfleet.observe.process import Offload
from bigfleet.shard.ports import Disk
from bigfleet.shard.state.errors import DoneInstructionsError
from bigfleet.shard.state.ownership import TransferRole
from bigfleet.shard.state.state_file import StateFile

FILE: Final = "instructions"
_MOST_KEPT: Final = 1_024
"""Entries in the file, the newest."""
_MOST_KNOWN: Final = 100_000
"""Ids known to the process."""


_REMEDY: Final = (
    "restore it from a backup, or remove it once the coordinator lists no unfinished moves "
    "(bigfleetctl moves)"
)


@dataclass(frozen=True, slots=True)
class Done:
    """An instruction that was carried out. `role` is None where nothing changed its owner."""

    instruction_id: str
    move_id: str = ""
    role: TransferRole | None = None
    machine_ids: tuple[str, ...] = ()
    promised_until_ns: int = 0
    """Until when drained machines are kept for another shard, in Unix nanoseconds; 0 for not."""


class DoneInstructions:
    """What was done. `load` first."""

    def __init__(self, disk: Disk, offload: Offload) -> None:
        self._file = StateFile(
            disk, FILE, msgspec.json.encode, _decoded, _REMEDY, DoneInstructionsError
        )
        self._offload = offload
        self._done: dict[str, Done] = {}
        self._kept: list[Done] = []

    def load(self) -> None:
        """Read the file. Blocking."""
        self._kept = self._file.load() or []
        self._done = {done.instruction_id: done for done in self._kept}

    def get(self, instruction_id: str) -> Done | None:
        """What an instruction led to; None when it was not done."""
        return self._done.get(instruction_id)

    def role_in(self, move_id: str) -> TransferRole | None:
        """Which end of a move this shard was, as far as it was done and remembered."""
        for done in reversed(self._kept):
            if done.move_id == move_id and done.role is not None:
                return done.role
        return None

    def promised(self) -> dict[str, int]:
        """Machines drained for another shard and not given yet, and until when they are kept."""
        until: dict[str, int] = {}
        for done in self._kept:
            for machine in done.machine_ids:
                until.pop(machine, None)
                if done.promised_until_ns:
                    until[machine] = done.promised_until_ns
        return until

    async def add(self, done: Done) -> None:
        """An instruction is done; one that named machines is in the file when this returns."""
        if done.machine_ids:
            kept = [*self._kept, done][-_MOST_KEPT:]
            await self._file.write(kept, self._offload)
            self._kept = kept
        self._done[done.instruction_id] = done
        while len(self._done) > _MOST_KNOWN:
            del self._done[next(iter(self._done))]


def _decoded(content: bytes) -> list[Done]:
    return msgspec.json.decode(content, type=list[Done])
