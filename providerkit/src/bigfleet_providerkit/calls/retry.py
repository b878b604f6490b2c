"""Trying again: how long to wait, and when to stop.

The pause doubles from 0.5 s to 30 s with full jitter and is never shorter than the substrate asked
for. Tries end when 90 % of the time is used, so that there is time left to say what was wrong. The
time is that of the transition, which every call inside it shares through a context variable.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from bigfleet_providerkit.clock import Runtime
from bigfleet_providerkit.errors import Retryable

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
SHARE_FOR_TRIES = 0.9
DEFAULT_SECONDS = 60.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Budget:
    """The time of a transition, on the monotonic clock."""

    starts: float
    ends: float

    @property
    def last_try(self) -> float:
        """After this moment nothing is tried again."""
        return self.starts + SHARE_FOR_TRIES * (self.ends - self.starts)


budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


def pause_before(runtime: Runtime, attempt: int, error: Retryable) -> float:
    """Seconds to wait before the next attempt; `attempt` counts from 0."""
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempt, 16))
    return max(runtime.rng.uniform(0.0, longest), error.after or 0.0)


async def retrying(
    runtime: Runtime,
    attempt: Callable[[], Awaitable[T]],
    on_retry: Callable[[], object] = lambda: None,
) -> T:
    """The result of the first attempt that works, or the last error."""
    limit = budget.get()
    if limit is None:
        now = runtime.clock.monotonic()
        limit = Budget(now, now + DEFAULT_SECONDS)
    tried = 0
    while True:
        try:
            return await attempt()
        except Retryable as error:
            pause = pause_before(runtime, tried, error)
            if runtime.clock.monotonic() + pause > limit.last_try:
                raise
        tried += 1
        on_retry()
        await runtime.clock.sleep(pause)
