"""Time and threads: what every part of a process is given, and what a real process gives it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol, TypeVar

T = TypeVar("T")
_STARTED: Final = 19
"""Where /proc/self/stat has the start, in ticks since boot, counted behind the name."""


class Clock(Protocol):
    """Two ways to tell the time; neither waits. Tests and simulations bring their own."""

    def now(self) -> int:
        """Unix nanoseconds. May jump: use it for what is written down, not for measuring."""

    def monotonic(self) -> float:
        """Seconds that only grow; the same count as the event loop's."""


class Offload(Protocol):
    """Runs a function away from the event loop and waits for its answer."""

    async def __call__(self, function: Callable[[], T]) -> T:
        """The function's answer, or its exception."""


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


def process_age() -> float:
    """Seconds since this process began, imports included; 0 where the kernel does not tell."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        began = int(fields[_STARTED]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - began)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


timer = time.perf_counter
"""For durations of a few milliseconds."""
