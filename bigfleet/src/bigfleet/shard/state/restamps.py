"""Stamps that machines were given after they had got one, on disk.

A provider keeps the stamp a machine was configured with, the journal the one it was created with.
A claim may re-stamp it later: another need of its cluster counts it from then on. With the former
stamp a restarted shard would hand machines to needs that have others by now, and drain what is left
over, at unchanged demand.

A cycle appends a line for every need that claimed other machines. No caller waits for that, and
nothing is taken back: a line counts as long as its machine has a stamp of that cluster which is not
newer. When most of the file is past it is rewritten with what still holds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

import msgspec
import numpy as np

from bigfleet.decision import Plan
from bigfleet.model import Machine, MachineState, Stamp
from bigfleet.model.columns import MachineColumns
from bigfleet.model.lifecycle import STAMPED
from bigfleet.observe.process import Offload
from bigfleet.shard.ports import Disk
from bigfleet.shard.state.checksummed_lines import read_lines, sealed

S = MachineState
FILE: Final = "restamps"
FEW_BYTES: Final = 1 << 20
"""So much of the past is not worth rewriting the file for."""
MOST_WAITING: Final = 16 << 20
"""Bytes kept for a disk that takes none."""
RETRY_SECONDS: Final = 1.0
_STAMPED: Final = tuple(STAMPED - {S.IDLE})
"""An Idle machine is stamped by the order that configures it, which the journal records."""
_log = logging.getLogger(__name__)


class _Line(msgspec.Struct):
    stamp: Stamp
    machines: list[str]
    sequences: list[int]


def lines_of(plan: Plan) -> bytes:
    """What a plan says of machines that had a need before. Takes no look at anything that changes:
    it may run beside the event loop."""
    fleet, given = plan.fleet, plan.stamps
    held = np.flatnonzero(np.isin(fleet.state[given.machine], _STAMPED))
    by_need = held[np.argsort(given.identity[held], kind="stable")]
    identities = given.identity[by_need]
    starts = np.flatnonzero(np.diff(identities, prepend=-1))
    lines = []
    for mine in np.split(by_need, starts)[1:]:
        stamp = fleet.symbols.stamp(int(given.identity[mine[0]]), 0)
        machines = [fleet.ids[row] for row in given.machine[mine].tolist()]
        lines.append(_line(stamp, machines, given.sequence[mine].tolist()))
    return b"".join(lines)


def renewed(machine: Machine, stamp: Stamp) -> Machine:
    """A machine as it is listed, with the stamp it was given last."""
    known = machine.stamp
    if known is None or known.cluster != stamp.cluster or known.sequence > stamp.sequence:
        return machine
    return replace(machine, stamp=stamp)


class Restamps:
    """The file. `load` first, then `run` beside the cycles."""

    def __init__(self, disk: Disk, offload: Offload, few_bytes: int = FEW_BYTES) -> None:
        self._disk = disk
        self._offload = offload
        self._few_bytes = few_bytes
        self._fleet: Callable[[], MachineColumns] | None = None
        self._waiting: list[bytes] = []
        self._size = 0
        self._size_rewritten = 0
        self._wanted = asyncio.Event()

    def load(self) -> dict[str, Stamp]:
        """The last stamp of each machine. Blocking; the disk's errors pass through."""
        content = self._disk.read(FILE) or b""
        read = read_lines(content, _parsed)
        if read.damaged:
            _log.error(
                "restamps damaged: machines may count for needs they served earlier; "
                "check the disk of the data directory",
                extra={"lines": read.damaged[:10], "count": len(read.damaged)},
            )
        if read.damaged or read.torn:
            content = b"".join(line for line, _ in read.lines)
            self._disk.replace(FILE, content)
        self._size = len(content)
        return _last(line for _, line in read.lines)

    def add(self, lines: bytes) -> None:
        """Write this soon."""
        if not lines:
            return
        waiting = sum(map(len, self._waiting))
        if waiting + len(lines) > MOST_WAITING:
            _log.warning(
                "restamps dropped: the data directory cannot be written", extra={"bytes": waiting}
            )
            self._waiting.clear()
        self._waiting.append(lines)
        self._wanted.set()

    def all_listed(self, fleet: Callable[[], MachineColumns]) -> None:
        """From now on, what the fleet does not show is past."""
        self._fleet = fleet

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._append()
                if (
                    self._fleet is not None
                    and self._size > 2 * self._size_rewritten + self._few_bytes
                ):
                    await self._rewrite(self._fleet())
            except OSError as error:
                _log.warning("restamps cannot be written", extra={"error": str(error)})
                await asyncio.sleep(RETRY_SECONDS)
                self._wanted.set()

    async def _append(self) -> None:
        lines, self._waiting = b"".join(self._waiting), []
        try:
            await self._offload(lambda: self._disk.append(FILE, lines))
        except OSError:
            self._waiting.insert(0, lines)
            raise
        self._size += len(lines)

    async def _rewrite(self, fleet: MachineColumns) -> None:
        self._size = await self._offload(lambda: _rewrite(self._disk, fleet))
        self._size_rewritten = self._size


def _rewrite(disk: Disk, fleet: MachineColumns) -> int:
    """Keep the last stamp of each machine that has it still; how long the file is then."""
    last = _last(line for _, line in read_lines(disk.read(FILE) or b"", _parsed).lines)
    rows = np.flatnonzero(np.isin(fleet.state, _STAMPED))
    needs: dict[Stamp, tuple[list[str], list[int]]] = {}
    for row, sequence in zip(rows.tolist(), fleet.sequence[rows].tolist(), strict=True):
        stamp = last.get(fleet.ids[row])
        if stamp is not None and stamp.sequence == sequence:
            machines, sequences = needs.setdefault(replace(stamp, sequence=0), ([], []))
            machines.append(fleet.ids[row])
            sequences.append(sequence)
    content = b"".join(_line(stamp, *of) for stamp, of in needs.items())
    disk.replace(FILE, content)
    return len(content)


def _line(stamp: Stamp, machines: list[str], sequences: list[int]) -> bytes:
    return sealed(msgspec.json.encode(_Line(replace(stamp, sequence=0), machines, sequences)))


def _last(lines: Iterable[_Line]) -> dict[str, Stamp]:
    return {
        machine: replace(line.stamp, sequence=sequence)
        for line in lines
        for machine, sequence in zip(line.machines, line.sequences, strict=True)
    }


def _parsed(body: bytes) -> _Line | None:
    try:
        line = msgspec.json.decode(body, type=_Line)
    except msgspec.MsgspecError:
        return None
    return line if len(line.machines) == len(line.sequences) else None
