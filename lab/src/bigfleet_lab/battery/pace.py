"""A clock that runs faster than real time, for a provider and its cloud together.

Rates of one call a second and time-outs of minutes are kept as they are declared, and a test of an
hour passes in minutes. What uses sockets, threads and processes is real and takes its real time, so
that on this clock it is slower by the factor than it would be: a test that passes here would pass
with more to spare at real speed.
"""

import asyncio
import time
from collections.abc import Callable

from bigfleet_providerkit.clock import Timer


class FastClock:
    """`factor` seconds pass in each real one; for the clock of a provider and of a fake cloud."""

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self._began_unix_s = time.time()
        self._began_monotonic_s = time.monotonic()

    def now(self) -> float:
        """Unix seconds, from the real time of the clock's start."""
        return self._began_unix_s + self.monotonic()

    def monotonic(self) -> float:
        """Seconds that never jump, since the clock's start."""
        return (time.monotonic() - self._began_monotonic_s) * self.factor

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back on the event loop after so many seconds of this clock."""
        return asyncio.get_running_loop().call_later(seconds / self.factor, callback)

    async def sleep(self, seconds: float) -> None:
        """Wait so many seconds of this clock."""
        await asyncio.sleep(seconds / self.factor)
