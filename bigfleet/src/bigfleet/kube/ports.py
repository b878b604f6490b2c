"""What the client is given from outside: time. Chance comes as a `random.Random`."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class KubeClock(Protocol):
    """Time, so that tests can make it."""

    def monotonic(self) -> float:
        """Seconds that only grow."""

    def now(self) -> datetime:
        """The time of day, with its zone."""

    async def sleep(self, seconds: float) -> None:
        """Let that much time pass."""


class KubeSystemClock:
    """The machine's time."""

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()

    def now(self) -> datetime:
        """The time of day in UTC."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Let that much time pass."""
        await asyncio.sleep(seconds)


class Observer(Protocol):
    """Is told of every request, so that the programs can count them in their own metrics."""

    def requested(self, verb: str, resource: str, code_class: str, seconds: float) -> None:
        """One request ended. `verb` is get, list, watch, create, patch or delete; `code_class` is
        2xx, 4xx, 409, 410, 429, 5xx, or error when there was no answer."""

    def watch_restarted(self, resource: str, reason: str) -> None:
        """A watch began again: `expired` (list again), `closed` (its time was over) or `error`."""


class NullObserver:
    """Counts nothing."""

    def requested(self, verb: str, resource: str, code_class: str, seconds: float) -> None:
        """Counts nothing."""

    def watch_restarted(self, resource: str, reason: str) -> None:
        """Counts nothing."""
