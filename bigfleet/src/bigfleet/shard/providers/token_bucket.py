"""How often something may be done: so many a second, a tenth of that at once."""

from __future__ import annotations

import asyncio

from bigfleet.observe.process import Clock


class Bucket:
    """Gives out moments. Those who come too early wait for theirs."""

    def __init__(self, per_second: float, clock: Clock) -> None:
        self._clock = clock
        self._apart = 1 / per_second
        self._ahead = max(0.0, 0.1 - self._apart)
        """How far the moments may run ahead of time."""
        self._next = float("-inf")

    async def take(self) -> None:
        """Wait for the next moment."""
        now = self._clock.monotonic()
        moment = max(self._next, now - self._ahead)
        self._next = moment + self._apart
        if moment > now:
            await asyncio.sleep(moment - now)
