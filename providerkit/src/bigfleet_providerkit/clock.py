"""Time and chance as parameters.

Nothing in the kit reads the system's clock or random source by itself; it gets a `Runtime`. A test
or a simulated fleet passes a `VirtualClock` and a seeded generator, and hours pass in milliseconds.
"""

import asyncio
import heapq
import itertools
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from bigfleet_providerkit.tracing.traces import Traces

T = TypeVar("T")


def _resolve(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class Timer(Protocol):
    """Something that was arranged and can be called off."""

    def cancel(self) -> None:
        """Do not call it."""
        ...


class Clock(Protocol):
    """What the kit asks about time."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back on the event loop after so many seconds."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The real time of this machine."""

    def now(self) -> float:
        """Unix seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return time.monotonic()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back on the event loop after so many seconds."""
        return asyncio.get_running_loop().call_later(seconds, callback)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@dataclass(order=True)
class _Arranged:
    when: float
    number: int
    callback: Callable[[], object] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        """Leave the entry in the heap; it is passed over when its time comes."""
        self.cancelled = True


class VirtualClock:
    """Time that passes only when told to. Between two timers the loop runs until nothing is due.

    `settle_rounds` is how many turns of the loop are granted after each timer; work that needs
    threads or sockets needs a real clock instead.
    """

    def __init__(self, start: float = 1_700_000_000.0, settle_rounds: int = 40) -> None:
        self._now = start
        self._start = start
        self._numbers = itertools.count()
        self._timers: list[_Arranged] = []
        self._rounds = settle_rounds

    def now(self) -> float:
        """Unix seconds, as set."""
        return self._now

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._now - self._start

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Arrange a call for when time has been moved that far."""
        entry = _Arranged(self._now + max(seconds, 0.0), next(self._numbers), callback)
        heapq.heappush(self._timers, entry)
        return entry

    async def sleep(self, seconds: float) -> None:
        """Wait until a test moves the time."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: _resolve(done))
        try:
            await done
        finally:
            timer.cancel()

    async def settle(self) -> None:
        """Let everything that can run at this moment run."""
        for _ in range(self._rounds):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Move time, stopping at every timer on the way."""
        end = self._now + seconds
        await self.settle()
        while self._timers and self._timers[0].when <= end:
            entry = heapq.heappop(self._timers)
            if entry.cancelled:
                continue
            self._now = max(self._now, entry.when)
            entry.callback()
            await self.settle()
        self._now = end
        await self.settle()

    async def until(self, condition: Callable[[], bool], limit: float = 86_400.0) -> float:
        """Move time from timer to timer until a condition holds; the seconds that took."""
        began = self._now
        await self.settle()
        while not condition():
            while self._timers and self._timers[0].cancelled:
                heapq.heappop(self._timers)
            if not self._timers or self._timers[0].when > began + limit:
                raise TimeoutError(f"the condition did not come true within {limit} s")
            await self.advance(self._timers[0].when - self._now)
        return self._now - began


async def in_thread(work: Callable[[], T]) -> T:
    """Long computations leave the event loop alone."""
    return await asyncio.to_thread(work)


async def inline(work: Callable[[], T]) -> T:
    """For virtual time: everything on one thread, in one order."""
    return work()


class Offload(Protocol):
    """Where a long computation runs."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]:
        """Run it and hand over its result."""
        ...


@dataclass(frozen=True, slots=True)
class Runtime:
    """Time, chance, the place for long computations and traces, as one parameter."""

    clock: Clock = field(default_factory=SystemClock)
    rng: random.Random = field(default_factory=random.Random)
    offload: Offload = in_thread
    traces: Traces = field(default_factory=Traces)

    @staticmethod
    def virtual(seed: int = 1) -> "Runtime":
        """A runtime for tests: virtual time, seeded chance, one thread."""
        return Runtime(VirtualClock(), random.Random(seed), inline)
