"""The clock and the threads of a real process: what parts are given as ports outside of tests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class SystemClock:
    """The clock of this machine."""

    def now(self) -> int:
        """Unix nanoseconds."""
        return time.time_ns()

    def monotonic(self) -> float:
        """Seconds that only grow, as asyncio counts them."""
        return time.monotonic()


class Threads:
    """Runs functions in a few threads of its own."""

    def __init__(self, name: str, most: int) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix=name)

    async def __call__(self, function: Callable[[], T]) -> T:
        """The function's answer, or its exception."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    def close(self) -> None:
        """Wait for what is running; take nothing more."""
        self._pool.shutdown(wait=True, cancel_futures=True)


timer = time.perf_counter
"""For durations of a few milliseconds."""
