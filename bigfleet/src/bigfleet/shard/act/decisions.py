"""The last decisions and how they ended, for those who watch.

A bounded ring: a reader who falls behind misses the oldest and is never waited for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import Final

KEPT: Final = 20_000


@dataclass(frozen=True, slots=True)
class Decision:
    """One order and its end, with the fields of the wire."""

    cycle: int
    unix_nanos: int
    kind: str
    machine_id: str
    cluster_id: str
    profile_fingerprint: str
    reason: str
    cost_per_hour: float
    outcome: str
    grace_seconds: int = 0


class Decisions:
    """What happened last, oldest first."""

    def __init__(self, kept: int = KEPT) -> None:
        self._ring: deque[Decision] = deque(maxlen=kept)
        self._count = 0
        self._more = asyncio.Event()

    def append(self, decision: Decision) -> None:
        """One more; the oldest may go for it."""
        self._ring.append(decision)
        self._count += 1
        if not self._more.is_set():
            self._more.set()

    @property
    def count(self) -> int:
        """How many there have been."""
        return self._count

    def since(self, cursor: int, cycle: int = 0) -> tuple[list[Decision], int]:
        """What came after a cursor (0 at first), from a cycle on, and the next cursor."""
        passed = max(0, cursor - (self._count - len(self._ring)))
        found = [d for d in islice(self._ring, passed, None) if d.cycle >= cycle]
        return found, self._count

    async def beyond(self, cursor: int) -> None:
        """Return when there is more than the cursor has seen."""
        while self._count <= cursor:
            self._more.clear()
            await self._more.wait()
