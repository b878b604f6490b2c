"""Trying again: how long to wait, and when to stop.

The pause doubles from 0.5 s to 30 s with full jitter and is never shorter than the substrate asked
for. Tries end when 90 % of the time is used, so that there is time left to say what was wrong. The
time is that of the transition, which every call inside it shares through a context variable.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import TypeVar

from bigfleet_providerkit.clock import Runtime
from bigfleet_providerkit.errors import Retryable
from bigfleet_providerkit.options.units import write_duration

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
SHARE_FOR_TRIES = 0.9
DEFAULT_SECONDS = 60.0
T = TypeVar("T")


@dataclass(slots=True)
class Budget:
    """The time of a transition, on the monotonic clock.

    `sent` says that a call was sent which may have made something.
    """

    starts: float
    ends: float
    sent: bool = False

    @property
    def last_try(self) -> float:
        """After this moment nothing is tried again."""
        return self.starts + SHARE_FOR_TRIES * (self.ends - self.starts)


budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


def pause_before(runtime: Runtime, attempt: int, error: Retryable) -> float:
    """Seconds to wait before the next attempt; `attempt` counts from 0."""
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempt, 16))
    return max(runtime.rng.uniform(0.0, longest), error.after or 0.0)


def budget_now(runtime: Runtime) -> Budget:
    """The time of the transition this is part of, or the time of work that has none."""
    limit = budget.get()
    if limit is None:
        now = runtime.clock.monotonic()
        limit = Budget(now, now + DEFAULT_SECONDS)
    return limit


async def retrying(
    runtime: Runtime,
    attempt: Callable[[], Awaitable[T]],
    on_retry: Callable[[], object] = lambda: None,
    final: tuple[type[Retryable], ...] = (),
) -> T:
    """The result of the first attempt that works, or the last error; `final` ones end it."""
    limit = budget_now(runtime)
    tried = 0
    while True:
        try:
            return await attempt()
        except final:
            raise
        except Retryable as error:
            pause = pause_before(runtime, tried, error)
            if runtime.clock.monotonic() + pause > limit.last_try:
                raise
        tried += 1
        on_retry()
        await runtime.clock.sleep(pause)


async def within(runtime: Runtime, seconds: float, work: Coroutine[object, object, T]) -> T:
    """Work outside of a transition: it has a time of its own, which its calls share."""
    clock, context, expired = runtime.clock, copy_context(), False
    now = clock.monotonic()
    context.run(budget.set, Budget(now, now + seconds))
    task = asyncio.get_running_loop().create_task(work, context=context)

    def time_is_up() -> None:
        nonlocal expired
        expired = True
        task.cancel()

    timer = clock.call_later(seconds, time_is_up)
    try:
        return await task
    except asyncio.CancelledError:
        if not expired:
            raise
        raise Retryable(f"no end within {write_duration(seconds)}") from None
    finally:
        timer.cancel()
