"""What comes from providers, on its way to the book: answers, the queue they wait in, the result.

The queue is bounded by records, not by answers: an answer that changes nothing costs nothing, while
the pages of a first List are megabytes each. Who brings more than there is room for, waits.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from bigfleet.model import Machine
from bigfleet.provider import RefusedRecord

PART: Final = 5_000
"""Records in one answer at most: 12 MB at 2.4 kB a machine."""
MOST_RECORDS: Final = 2 * PART
"""Records that wait at most."""


class Walk:
    """A full List under way: which rows of the inventory it has shown."""

    __slots__ = ("newcomers", "number", "seen", "strangers", "wanted")

    def __init__(self, number: int, wanted: Iterable[str] = ()) -> None:
        """`wanted` machines are looked at whatever is known of them."""
        self.number = number
        self.wanted = frozenset(wanted)
        self.seen = bytearray()
        self.newcomers: set[str] = set()
        """Machines that came into the book by another way since it was asked for."""
        self.strangers: set[int] = set()
        """Digests of records that are not this shard's."""

    def saw(self, row: int) -> None:
        """The machine of a row is there."""
        if row >= len(self.seen):
            self.seen.extend(bytes(row + 1 + row // 4 - len(self.seen)))
        self.seen[row] = 1


@dataclass(slots=True)
class Answer:
    """Records of one provider that are news, or the end of a List."""

    provider: str
    sent_monotonic_s: float
    """By the monotonic clock."""
    question: int = 0
    """Number of the question; 0 for a Get."""
    since: bytes = b""
    """A cursor that is older than any of the records; empty for none."""
    machines: list[tuple[Machine, int]] = field(default_factory=list)
    """With the digest of the record; 0 where it is not known."""
    refused: list[tuple[RefusedRecord, int]] = field(default_factory=list)
    walk: Walk | None = None
    ends_walk: bool = False
    merged: int = 0
    """How many of the machines are in the book already."""
    doubled: int = 0
    """Records left out because a later one is of the same machine."""

    def __len__(self) -> int:
        return len(self.machines)


@dataclass(slots=True)
class MergeSummary:
    """What merging changed."""

    changes: int = 0
    """Machines that are new, different or gone."""
    losses: list[Machine] = field(default_factory=list)
    """Bound machines that failed or vanished, as they were known."""
    jumped: int = 0
    removed: int = 0
    freed: int = 0
    delivered: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """By reason."""
    merged: set[str] = field(default_factory=set)
    """Providers of which something of a List was merged."""
    more: bool = False
    """Something is left for the next piece."""


class Inbox:
    """Answers that wait to be merged, in the order they came."""

    def __init__(self, most: int = MOST_RECORDS) -> None:
        self._most = most
        self._answers: deque[Answer] = deque()
        self._records = 0
        self._room = asyncio.Event()

    def __len__(self) -> int:
        return len(self._answers)

    async def put(self, answer: Answer) -> None:
        """Add an answer once there is room for it."""
        while self._records and self._records + len(answer) > self._most:
            self._room.clear()
            await self._room.wait()
        self._answers.append(answer)
        self._records += len(answer)

    def first(self) -> Answer | None:
        """The oldest one."""
        return self._answers[0] if self._answers else None

    def done(self) -> None:
        """The oldest one is merged."""
        self._records -= len(self._answers.popleft())
        self._room.set()

    def drop(self, provider: str) -> None:
        """This provider's answers are not wanted any more."""
        self._answers = deque(a for a in self._answers if a.provider != provider)
        self._records = sum(map(len, self._answers))
        self._room.set()
