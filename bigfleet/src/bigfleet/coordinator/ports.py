"""What a coordinator needs from outside besides its store: time, and a place for slow work.

Waiting is asyncio's, so that several coordinators and their shards can run in one process on
virtual time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Two ways to tell the time; neither waits."""

    def now(self) -> int:
        """Unix nanoseconds. May jump: use it for what is written down, not for measuring."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow; the same count as the event loop's."""
        ...


class Offload(Protocol):
    """Runs a function away from the event loop and waits for its answer."""

    async def __call__(self, function: Callable[[], T]) -> T:
        """The function's answer, or its exception."""
        ...
