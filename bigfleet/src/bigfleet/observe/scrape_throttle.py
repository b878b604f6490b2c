"""Scrapes that stay out of a cycle's way.

A page is written by a thread that shares the interpreter with the ones that decide and serve
sessions. So it is written in bites; between two of them others get their turn, and while a cycle
runs the page waits for its end. A scrape must be answered in time, whatever cycles take: what is
not written by then is written in one go. Measured by `make bench ONLY=metrics`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

PAUSE_SECONDS: Final = 0.0002
PATIENCE_SECONDS: Final = 0.05
"""After this a page makes no more pauses and waits for no cycle: a scrape has 100 ms."""


class CycleLock:
    """Who must not be disturbed takes it; who can wait looks whether it is taken."""

    def __init__(self) -> None:
        self._free = threading.Event()
        self._free.set()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Around what must not be disturbed; by one at a time."""
        self._free.clear()
        try:
            yield
        finally:
            self._free.set()

    def wait(self, seconds: float) -> None:
        """Return when it is free, or so much later."""
        self._free.wait(seconds)


class ScrapeThrottle:
    """What a page does between two bites."""

    def __init__(
        self,
        way: CycleLock,
        rest: Callable[[float], None] = time.sleep,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._way, self._rest, self._timer = way, rest, timer
        self._until = timer() + PATIENCE_SECONDS

    def __call__(self) -> None:
        """Let others have their turn, and a cycle its end."""
        if self._timer() < self._until:
            self._rest(PAUSE_SECONDS)
            self._way.wait(max(0.0, self._until - self._timer()))
