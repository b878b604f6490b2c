"""What only the shard knows of its machines, on disk before anything is done about it.

For whom a Creating or Idle machine is meant, that a machine is in its grace, until when and for
whom: no provider can say that after a restart. Operations are lines in one file, appended and
flushed in groups: callers that wait while one group is being flushed are in the next, however many
they are. When more of the file is past than present it is rewritten.

Each line carries a checksum. A line that was cut off by a crash was never acknowledged and is
passed over. A damaged line elsewhere is passed over too, counted and shouted about: without it a
Creating machine counts for the first need that fits, which costs less than a shard that does not
start. The damaged file is kept beside the new one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from bigfleet.model import Stamp
from bigfleet.observe.process import Offload
from bigfleet.shard.ports import Disk
from bigfleet.shard.state.checksummed_lines import read_lines, sealed

FILE: Final = "journal"
DAMAGED_FILE: Final = "journal.damaged"
FEW: Final = 256
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What must be known of a machine after a restart and stands nowhere else."""

    stamp: Stamp | None = None
    leaving: bool = False
    for_stamp: Stamp | None = None
    deadline_ns: int = 0
    instruction_id: str = ""
    final: bool = False
    """It leaves on request; lines of older releases do not say."""


class _Line(msgspec.Struct, omit_defaults=True):
    machine: str
    entry: JournalEntry | None = None
    """None for a machine that is forgotten."""


@dataclass(slots=True)
class _Operation:
    machine: str
    line: bytes
    forgets: bool
    done: asyncio.Future[None] | None = None


class Journal:
    """The memory. `load` first, then `run` beside everything that remembers."""

    def __init__(self, disk: Disk, offload: Offload, few: int = FEW) -> None:
        """`few` lines of the past are not worth rewriting the file for."""
        self._disk = disk
        self._offload = offload
        self._few = few
        self._lines: dict[str, bytes] = {}
        self._written = 0
        self._must_rewrite = False
        self._waiting: list[_Operation] = []
        self._unflushed: set[str] = set()
        self._wanted = asyncio.Event()
        self.error = ""
        """Why the last group could not be written; empty when it was."""

    def load(self) -> dict[str, JournalEntry]:
        """Everything remembered. Blocking; the disk's errors pass through."""
        content = self._disk.read(FILE) or b""
        read = read_lines(content, _parsed)
        if read.damaged:
            self._disk.replace(DAMAGED_FILE, content)
            _log.error(
                "journal damaged: machines being created or drained may be taken for other needs; "
                "check the disk of the data directory",
                extra={"lines": read.damaged[:10], "count": len(read.damaged),
                       "kept_as": DAMAGED_FILE},
            )  # fmt: skip
        entries: dict[str, JournalEntry] = {}
        for line, known in read.lines:
            self._lines.pop(known.machine, None)
            entries.pop(known.machine, None)
            if known.entry is not None:
                self._lines[known.machine] = line
                entries[known.machine] = known.entry
        self._written = len(read.lines)
        self._must_rewrite = read.torn or bool(read.damaged)
        return entries

    def knows(self, machine_id: str) -> bool:
        """Whether something is remembered of a machine, on disk."""
        return machine_id in self._lines

    async def remember(self, machine_id: str, entry: JournalEntry) -> None:
        """From now on this is known of the machine; durable when it returns, else OSError."""
        await self._through(_operation(machine_id, entry))

    async def forget(self, machine_id: str) -> None:
        """Nothing is; durable when it returns, else OSError."""
        if self._concerns(machine_id):
            await self._through(_operation(machine_id, None))

    def forget_soon(self, machine_ids: Iterable[str]) -> None:
        """The same with the next group, for those who need not wait."""
        for machine_id in machine_ids:
            if self._concerns(machine_id):
                self._queue(_operation(machine_id, None))

    async def run(self) -> None:
        """Flush groups until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            while self._waiting:
                await self._commit()

    async def _through(self, operation: _Operation) -> None:
        operation.done = asyncio.get_running_loop().create_future()
        self._queue(operation)
        await operation.done

    def _queue(self, operation: _Operation) -> None:
        self._waiting.append(operation)
        self._unflushed.add(operation.machine)
        self._wanted.set()

    def _concerns(self, machine_id: str) -> bool:
        return machine_id in self._lines or machine_id in self._unflushed

    async def _commit(self) -> None:
        group, self._waiting = self._waiting, []
        past = self._written + len(group) - len(self._lines)
        rewrite = self._must_rewrite or past > max(self._few, len(self._lines))
        try:
            if rewrite:
                lines = list(_applied(group, dict(self._lines)).values())
                await self._offload(lambda: self._disk.replace(FILE, b"".join(lines)))
            else:
                added = b"".join([operation.line for operation in group])
                await self._offload(lambda: self._disk.append(FILE, added))
        except OSError as error:
            # Perhaps a part of it is on disk: only a rewritten file is certain.
            self._must_rewrite = True
            self.error = str(error)
            _log.error("journal cannot be written", extra={"error": str(error)})
            _answer(group, error)
        else:
            _applied(group, self._lines)
            self._must_rewrite = False
            self.error = ""
            self._written = len(self._lines) if rewrite else self._written + len(group)
            _answer(group, None)
        self._unflushed = {operation.machine for operation in self._waiting}


def _applied(group: list[_Operation], lines: dict[str, bytes]) -> dict[str, bytes]:
    for operation in group:
        lines.pop(operation.machine, None)
        if not operation.forgets:
            lines[operation.machine] = operation.line
    return lines


def _answer(group: list[_Operation], error: OSError | None) -> None:
    for operation in group:
        if operation.done is None or operation.done.done():
            continue
        if error is None:
            operation.done.set_result(None)
        else:
            operation.done.set_exception(error)


def _operation(machine_id: str, entry: JournalEntry | None) -> _Operation:
    line = sealed(msgspec.json.encode(_Line(machine_id, entry)))
    return _Operation(machine_id, line, entry is None)


def _parsed(body: bytes) -> _Line | None:
    try:
        return msgspec.json.decode(body, type=_Line)
    except msgspec.MsgspecError:
        return None
