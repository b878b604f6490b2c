"""How long a machine kept a process from running that was due.

Bars in seconds are for a machine with time to spare. On a busy one, what it stood still is not what
is measured, and is let pass.
"""

from __future__ import annotations

import asyncio
import time


class Stalls:
    """Looks at the clock on a beat, and adds up how late it is."""

    BEAT_SECONDS = 0.02

    def __init__(self) -> None:
        self._late: list[tuple[float, float]] = []

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            due = time.monotonic() + self.BEAT_SECONDS
            await asyncio.sleep(self.BEAT_SECONDS)
            late = time.monotonic() - due
            if late > self.BEAT_SECONDS:
                self._late.append((due, late))

    def since(self, begun: float) -> float:
        """Seconds lost from a moment on."""
        return sum(late for due, late in self._late if due >= begun)
