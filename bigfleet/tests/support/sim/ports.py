"""Clock, disk and a place to compute, as a shard asks for them, without any of the three.

The disk keeps the promise of `bigfleet.shard.ports.Disk` and not more: what a call returned for is
there after a crash; of what was under way, all, nothing or a part. A call is under way until the
offload that made it has answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol, TypeVar

from sim.process import Process

T = TypeVar("T")
NANO: Final = 1_000_000_000
EPOCH_NS: Final = 1_750_000_000 * NANO
"""What the wall says at the beginning of every run."""


class DiskFullError(OSError):
    """No space is left; nothing was written."""


class SimClock:
    """The loop's time, and a wall clock that can be set."""

    def __init__(self) -> None:
        self._offset = 0
        self._loop = asyncio.get_running_loop()

    def now(self) -> int:
        """Unix nanoseconds by this clock."""
        return EPOCH_NS + int(self.monotonic() * NANO) + self._offset

    def monotonic(self) -> float:
        """The loop's time."""
        return self._loop.time()

    def jump(self, seconds: float) -> None:
        """A person sets the wall clock."""
        self._offset += int(seconds * NANO)


@dataclass(frozen=True, slots=True)
class _Write:
    """A write under way: what the file was before, and what an append is adding."""

    number: int
    name: str
    before: bytes | None
    added: bytes | None


class SimDisk:
    """Files that outlive processes."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._files: dict[str, bytes] = {}
        self._under_way: list[_Write] = []
        self._later = False
        self.writes = 0
        self.full = False

    def read(self, name: str) -> bytes | None:
        """The content of a file."""
        return self._files.get(name)

    def replace(self, name: str, content: bytes) -> None:
        """The new content or the old, never a mixture."""
        self._begin(name, None)
        self._files[name] = bytes(content)
        self._end()

    def append(self, name: str, content: bytes) -> None:
        """More at the end."""
        self._begin(name, bytes(content))
        self._files[name] = self._files.get(name, b"") + bytes(content)
        self._end()

    @contextmanager
    def answered_later(self) -> Iterator[None]:
        """Writes made inside are under way until they are settled."""
        self._later = True
        try:
            yield
        finally:
            self._later = False

    def settle(self, first: int) -> None:
        """Writes after this number have been answered, and with them what they build on."""
        last = {write.name: write.number for write in self._under_way if write.number > first}
        self._under_way = [
            write for write in self._under_way if write.number > last.get(write.name, 0)
        ]

    def crash(self) -> None:
        """Power goes: what is under way is there, is not there, or is torn."""
        reached = set[str]()
        for write in reversed(self._under_way):
            fate = self._rng.random()
            if write.name in reached or fate < 0.4:
                # What a later write builds on must be there with it.
                reached.add(write.name)
            else:
                self._put_back(write, torn=fate > 0.8)
                if fate > 0.8:
                    reached.add(write.name)
        self._under_way.clear()

    def copy(self) -> SimDisk:
        """A disk with the same files, for a process that believes it still has this one."""
        other = SimDisk(Random(self._rng.random()))
        other._files = dict(self._files)
        return other

    def lose(self) -> None:
        """The volume is gone."""
        self._files.clear()
        self._under_way.clear()

    def _begin(self, name: str, added: bytes | None) -> None:
        if self.full:
            raise DiskFullError(28, "No space left on device")
        self.writes += 1
        self._under_way.append(_Write(self.writes, name, self._files.get(name), added))

    def _end(self) -> None:
        if not self._later:
            self.settle(self.writes - 1)

    def _put_back(self, write: _Write, torn: bool) -> None:
        if write.added is not None and torn:
            part = write.added[: self._rng.randrange(len(write.added) + 1)]
            self._files[write.name] = (write.before or b"") + part
        elif write.before is None:
            self._files.pop(write.name, None)
        else:
            self._files[write.name] = write.before


class Settling(Protocol):
    """A disk that is told when writes were answered."""

    @property
    def writes(self) -> int:
        """How many there were."""
        ...

    def answered_later(self) -> AbstractContextManager[None]:
        """Writes made inside are under way until they are settled."""
        ...

    def settle(self, first: int) -> None:
        """Writes after this number have been answered."""
        ...


class SimOffload:
    """Computes at once, and answers a little later.

    The process may die between the work and the answer: then its disk may have lost the work.
    """

    def __init__(self, process: Process, disk: Settling, rng: Random, *, seconds: float) -> None:
        self._process = process
        self._disk = disk
        self._rng = rng
        self._seconds = seconds

    async def __call__(self, function: Callable[[], T]) -> T:
        """The function's answer."""
        await asyncio.sleep(self._rng.random() * self._seconds)
        first = self._disk.writes
        try:
            with self._disk.answered_later():
                answer = function()
            await asyncio.sleep(self._rng.random() * self._seconds)
            return answer
        finally:
            self._disk.settle(first)
