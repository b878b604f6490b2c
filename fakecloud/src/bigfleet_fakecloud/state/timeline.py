"""Time, and what is due: the only place that reads a clock.

Nothing runs in the background. Every call first lets everything happen that became due,
each event at its own moment, so a read after an hour of virtual time finds the same history as
one that watched. A turn also holds the lock: calls over HTTP and calls by a test's thread never
mix.
"""

import asyncio
import contextlib
import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from bigfleet_fakecloud.errors import ScriptError


class Clock(Protocol):
    """What the engine asks about time."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait so long on this clock."""
        ...


class RealClock:
    """The time of this machine."""

    def now(self) -> float:
        """Unix seconds."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


Waiter = tuple[float, int, asyncio.AbstractEventLoop, "asyncio.Future[None]"]


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class VirtualClock:
    """Time that passes only when told to; any thread may move it, any loop may wait on it."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self._numbers = itertools.count()
        self._waiters: list[Waiter] = []
        self._lock = threading.Lock()

    def now(self) -> float:
        """Unix seconds, as set."""
        return self._now

    @property
    def waiting(self) -> int:
        """How many calls wait for time to be moved."""
        with self._lock:
            return sum(not waiter[3].done() for waiter in self._waiters)

    async def sleep(self, seconds: float) -> None:
        """Wait until a test moved the time that far."""
        if seconds <= 0:
            return
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            entry = (self._now + seconds, next(self._numbers), loop, future)
            heapq.heappush(self._waiters, entry)
        await future

    def advance(self, seconds: float) -> None:
        """Move the time and wake the tasks that waited for it."""
        if seconds < 0:
            raise ScriptError(f"time cannot go back by {-seconds} s; give a positive number")
        with self._lock:
            self._now += seconds
            due: list[Waiter] = []
            while self._waiters and self._waiters[0][0] <= self._now:
                due.append(heapq.heappop(self._waiters))
        for _, _, loop, future in due:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_wake, future)


class Timeline:
    """Events in the order of their moments, run at the next look."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._lock = threading.RLock()
        self._numbers = itertools.count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._moment: float | None = None

    def now(self) -> float:
        """The moment of the event that is running, else the clock's."""
        return self.clock.now() if self._moment is None else self._moment

    def after(self, seconds: float, event: Callable[[], None]) -> None:
        """Let something happen later. An event that lost its meaning finds that out by itself."""
        with self._lock:
            when = self.now() + max(seconds, 0.0)
            heapq.heappush(self._due, (when, next(self._numbers), event))

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Alone with the world, after everything due has happened, before and after."""
        with self._lock:
            self._settle()
            try:
                yield
            finally:
                self._settle()

    def _settle(self) -> None:
        if self._moment is not None:
            return
        try:
            while self._due and self._due[0][0] <= self.clock.now():
                self._moment, _, event = heapq.heappop(self._due)
                event()
        finally:
            self._moment = None
