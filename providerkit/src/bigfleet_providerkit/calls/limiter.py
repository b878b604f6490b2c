"""How fast calls of a substrate are made: a bucket with a rate that gives way to throttling.

Callers are served in order, at the rate of the moment in which they are served. Polls (looks at
something under way) and other calls take turns, so that neither waits behind a queue of the other.

All callers share what one of them learns. A throttled answer lowers the rate by a fifth, any other
answer raises it by 3 %. So the rate rests where one call in nine is throttled: a cloud that
throttles one call in twenty at random leaves it at what was declared, and a quota below that is
found within some twenty throttled calls. Calls that were under way together lower it to a quarter
at most, because the last of them say nothing that the first did not. The rate grows with time as
well, once nothing was throttled for a while.

A throttled call is delayed alone; `retry` obeys its Retry-After. A Retry-After of 5 s or more
pauses the whole bucket, because it speaks of the account; after it one call goes first.
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
AFTER_THROTTLED, AFTER_OTHER = 0.8, 1.03
LEAST_OF_FLIGHT = 0.25
GROWTH_PER_SECOND = 1.1
QUIET_CALLS, QUIET_S, QUIET_AT_MOST_S = 15.0, 10.0, 60.0
"""When the rate begins to grow with time: after the time of so many calls, within these bounds."""
PAUSES_ALL_S = 5.0
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
        self._grows_from_monotonic_s = clock.monotonic()
        self._flight_rate = rate
        self._flight_from_monotonic_s = float("-inf")
        self._paused_until_monotonic_s = float("-inf")
        self._waiting: tuple[deque[asyncio.Future[None]], ...] = (deque(), deque())
        self._next_is_poll = True
        self._timer: Timer | None = None

    @property
    def rate(self) -> float:
        """Calls a second at this moment."""
        now = self._clock.monotonic()
        grown_s = min(now - self._grows_from_monotonic_s, 1000.0)
        if grown_s > 0:
            self._rate = min(self._declared, self._rate * GROWTH_PER_SECOND**grown_s)
            self._grows_from_monotonic_s = now
        return self._rate

    def answered(
        self, *, throttled: bool, after: float | None = None, sent_monotonic_s: float | None = None
    ) -> None:
        """A call that was sent then came back; `after` is the pause that a throttled one was given.

        Without `sent_monotonic_s` the call was sent at this moment.
        """
        rate, now = self.rate, self._clock.monotonic()
        self._fill()
        if not throttled:
            self._rate = min(self._declared, rate * AFTER_OTHER)
            return
        if (now if sent_monotonic_s is None else sent_monotonic_s) >= self._flight_from_monotonic_s:
            self._flight_rate, self._flight_from_monotonic_s = rate, now
        slowest = max(min(SLOWEST_RATE, self._declared), LEAST_OF_FLIGHT * self._flight_rate)
        self._rate = max(slowest, rate * AFTER_THROTTLED)
        # What was saved up belongs to the old rate.
        self._tokens = min(self._tokens, 1.0)
        quiet_s = min(max(QUIET_S, QUIET_CALLS / self._rate), QUIET_AT_MOST_S)
        self._grows_from_monotonic_s = now + quiet_s
        if after is not None and after >= PAUSES_ALL_S:
            self._paused_until_monotonic_s = max(self._paused_until_monotonic_s, now + after)
            self._tokens = 1.0

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
        # Nothing is saved up while the bucket pauses.
        began = max(self._filled_monotonic_s, min(now, self._paused_until_monotonic_s))
        self._tokens = min(self._burst, self._tokens + (now - began) * self.rate)
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
