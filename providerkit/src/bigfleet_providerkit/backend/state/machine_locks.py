"""One lock per machine: one change is under way at a time, first come, first served.

Taking a free lock awaits nothing, so a mutation stays one step of the event loop. The task that
finishes a change releases the lock, and that may be another task than the one that took it: a
commit releases it even when the caller has gone.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator


class MachineLocks:
    """Which machines are being changed, and the tasks that wait for them."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def acquire_now(self, machine: str) -> bool:
        """Take a lock that is free; False where another change is under way."""
        if machine in self._waiting:
            return False
        self._waiting[machine] = deque()
        return True

    async def acquire(self, machine: str) -> None:
        """Wait until no other change of the machine is under way."""
        if self.acquire_now(machine):
            return
        waiting = self._waiting[machine]
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(granted)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.release(machine)
            raise

    def release(self, machine: str) -> None:
        """Let the next one begin."""
        waiting = self._waiting[machine]
        while waiting:
            granted = waiting.popleft()
            if not granted.done():
                granted.set_result(None)
                return
        del self._waiting[machine]

    @contextlib.asynccontextmanager
    async def hold(self, machine: str) -> AsyncIterator[None]:
        """Hold the machine for the length of a block that is not cancelled inside a commit."""
        await self.acquire(machine)
        try:
            yield
        finally:
            self.release(machine)
