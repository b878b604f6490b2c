"""A clock that stands still until a test moves it."""

from __future__ import annotations

from dataclasses import dataclass

SECOND = 1_000_000_000


@dataclass
class HandClock:
    """Both ways to tell the time, moved by hand."""

    unix: int = 1_700_000_000 * SECOND
    seconds: float = 100.0

    def now(self) -> int:
        """Unix nanoseconds."""
        return self.unix

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return self.seconds

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds
        self.unix += int(seconds * SECOND)
