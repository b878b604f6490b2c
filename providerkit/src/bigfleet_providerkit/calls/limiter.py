"""How fast calls of a substrate are made: a bucket with a rate that gives way to throttling.

Callers are served in order, at the rate of the moment in which they are served. Polls (looks at
something under way) and other calls take turns, so that neither waits behind a queue of the other.

A single throttled answer delays its own call only; `retry` obeys its Retry-After. The rate is
halved when more than a fifth of the last 50 calls were throttled, once a second at most, and grows
back by a tenth a second while calls are not throttled. Without that condition it would go up and
down around the real rate with a fifth of the calls wasted. A Retry-After of 5 s or more pauses the
whole bucket, because it speaks of the account.
"""

import asyncio
from collections import deque
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from bigfleet_providerkit.clock import Clock, Timer

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_RATE, DEFAULT_BURST_S = 50.0, 0.2
SLOWEST_RATE = 0.1
GROWTH_PER_SECOND = 1.1
WINDOW_CALLS = 50
TOLERATED_SHARE = 0.2
PAUSES_ALL_S = 5.0
HELD_CALLS, HELD_AT_MOST_S = 20, 10.0
"""How long the rate does not grow after a throttled call: so many good ones, or so long."""
LONGEST_STEP_S, SHORTEST_STEP_S = 1.0, 0.001
"""How long a queue waits before it looks again at its rate, which grows."""
_WHOLE = 1.0 - 1e-9

polls: ContextVar[bool] = ContextVar("polls", default=False)


@contextmanager
def polling() -> "Iterator[None]":
    """Calls made inside are looks at something under way."""
    before = polls.set(True)
    try:
        yield
    finally:
        polls.reset(before)


class Limiter:
    """One bucket: the calls of one name, or of all names that share a quota."""

    def __init__(
        self, clock: Clock, rate: float = DEFAULT_RATE, burst: float | None = None
    ) -> None:
        self._clock = clock
        self._declared = rate
        self._burst = max(1.0, rate * DEFAULT_BURST_S if burst is None else burst)
        self._tokens = self._burst
        self._filled_monotonic_s = clock.monotonic()
        self._rate = rate
        self._grown_monotonic_s = clock.monotonic()
        self._slowed_monotonic_s = float("-inf")
        self._held_until_monotonic_s = float("-inf")
        self._calls_held = 0
        self._paused_until_monotonic_s = float("-inf")
        self._throttled: deque[bool] = deque(maxlen=WINDOW_CALLS)
        self._waiting: tuple[deque[asyncio.Future[None]], ...] = (deque(), deque())
        self._next_is_poll = True
        self._timer: Timer | None = None

    @property
    def rate(self) -> float:
        """Calls a second at this moment."""
        now = self._clock.monotonic()
        begins = self._grown_monotonic_s
        if self._calls_held > 0:
            begins = max(begins, min(now, self._held_until_monotonic_s))
        if self._rate < self._declared:
            steps = min(now - begins, 1000.0)
            self._rate = min(self._declared, self._rate * GROWTH_PER_SECOND**steps)
        self._grown_monotonic_s = now
        return self._rate

    def answered(self, *, throttled: bool, after: float | None = None) -> None:
        """A call came back; `after` is the pause that a throttled one was given."""
        self._throttled.append(throttled)
        rate, now = self.rate, self._clock.monotonic()
        if not throttled:
            self._calls_held -= 1
            return
        self._calls_held, self._held_until_monotonic_s = HELD_CALLS, now + HELD_AT_MOST_S
        if after is not None and after >= PAUSES_ALL_S:
            self._paused_until_monotonic_s = max(self._paused_until_monotonic_s, now + after)
        too_many = sum(self._throttled) > TOLERATED_SHARE * WINDOW_CALLS
        if too_many and now - self._slowed_monotonic_s >= 1.0:
            self._fill()
            self._rate = max(min(SLOWEST_RATE, self._declared), rate / 2.0)
            self._slowed_monotonic_s = now
            # What was saved up belongs to the old rate.
            self._tokens = min(self._tokens, 1.0)

    async def turn(self, until_monotonic_s: float) -> bool:
        """Wait for the caller's turn; False when it did not come in time."""
        self._fill()
        if not any(self._waiting) and self._tokens >= _WHOLE and not self._pause():
            self._tokens -= 1.0
            return True
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[polls.get()].append(mine)
        self._arrange()
        left = max(0.0, until_monotonic_s - self._clock.monotonic())
        limit = self._clock.call_later(left, mine.cancel)
        try:
            await asyncio.wait({mine})
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._tokens += 1.0
            mine.cancel()
            raise
        finally:
            limit.cancel()
        return not mine.cancelled()

    def _fill(self) -> None:
        now = self._clock.monotonic()
        grown = (now - self._filled_monotonic_s) * self.rate
        self._tokens = min(self._burst, self._tokens + grown)
        self._filled_monotonic_s = now

    def _pause(self) -> float:
        return max(0.0, self._paused_until_monotonic_s - self._clock.monotonic())

    def _arrange(self) -> None:
        if self._timer is None:
            missing = max(0.0, 1.0 - self._tokens) / self.rate
            wait = max(min(missing, LONGEST_STEP_S), self._pause(), SHORTEST_STEP_S)
            self._timer = self._clock.call_later(wait, self._serve)

    def _serve(self) -> None:
        self._timer = None
        self._fill()
        while self._tokens >= _WHOLE and not self._pause():
            waiting = self._next()
            if waiting is None:
                return
            self._tokens -= 1.0
            waiting.set_result(None)
        if any(self._waiting):
            self._arrange()

    def _next(self) -> "asyncio.Future[None] | None":
        """The longest waiting of the two queues, which take turns."""
        for queue in (self._waiting[self._next_is_poll], self._waiting[not self._next_is_poll]):
            while queue:
                found = queue.popleft()
                if not found.done():
                    self._next_is_poll = queue is not self._waiting[True]
                    return found
        return None
