"""When the next cycle begins: on the tick, or earlier when a part of the shard has a reason.

Wake-ups have one slot: any number of them before a cycle are one. A minimum gap keeps a storm of
roll-ups from spinning the cycle, and cycles never overlap because one task asks for the next.
"""

from __future__ import annotations

import asyncio
from typing import Final

from bigfleet.observe.process import Clock

TICK: Final = "tick"
WAKEUP: Final = "wakeup"


class CycleTimer:
    """Paces one task. Seconds by the monotonic clock."""

    def __init__(self, clock: Clock, interval: float, least_gap: float) -> None:
        self._clock = clock
        self._interval = interval
        self._least_gap = least_gap
        self._woken = asyncio.Event()
        self._last = clock.monotonic() - interval

    def wake(self) -> None:
        """A cycle is wanted soon."""
        self._woken.set()

    async def next(self) -> str:
        """Wait until a cycle is due; what made it so."""
        earliest = self._last + self._least_gap - self._clock.monotonic()
        if earliest > 0:
            await asyncio.sleep(earliest)
        rest = self._last + self._interval - self._clock.monotonic()
        trigger = TICK
        if rest > 0:
            try:
                async with asyncio.timeout(rest):
                    await self._woken.wait()
                trigger = WAKEUP
            except TimeoutError:
                pass
        self._woken.clear()
        self._last = self._clock.monotonic()
        return trigger
