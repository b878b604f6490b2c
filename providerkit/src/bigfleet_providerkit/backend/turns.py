"""Turns: per machine, one change is under way at a time, in the order of asking.

Taking a free turn awaits nothing, so a mutation stays one step of the event loop. A turn is given
back by whoever finishes the change, which need not be the one who took it: a commit gives it back
even when the caller has gone.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator


class Turns:
    """Who is changing which machine, and who waits."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def take_now(self, machine: str) -> bool:
        """Take a turn that is free; False where another change is under way."""
        if machine in self._waiting:
            return False
        self._waiting[machine] = deque()
        return True

    async def take(self, machine: str) -> None:
        """Wait until no other change of the machine is under way."""
        if self.take_now(machine):
            return
        waiting = self._waiting[machine]
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(granted)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.give(machine)
            raise

    def give(self, machine: str) -> None:
        """Let the next one begin."""
        waiting = self._waiting[machine]
        while waiting:
            granted = waiting.popleft()
            if not granted.done():
                granted.set_result(None)
                return
        del self._waiting[machine]

    @contextlib.asynccontextmanager
    async def turn(self, machine: str) -> AsyncIterator[None]:
        """Hold the machine for the length of a block that is not cancelled inside a commit."""
        await self.take(machine)
        try:
            yield
        finally:
            self.give(machine)
