"""Work that is in no hurry, a little of it at a time.

After a restart every cluster is replayed at once. Were each session to do a bit of that in each
turn of the event loop, a turn would last as long as there are sessions, and a Hello takes a dozen
turns. So they share: so many pieces at a time for all of them together, first come, first served,
and a pause after them, in which the loop, and the operators' side of a small machine, are free for
others. Who waits for something else does not stand in line, and so delays no other session.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

PIECES: Final = 16
"""Frames of replays at a time: about a millisecond and a half, with writing them."""
PAUSE_SECONDS: Final = 0.004
"""After them: up to 3,000 frames a second in all, for a quarter of the event loop's time."""


class ReplayThrottle:
    """Lets a few through at a time."""

    def __init__(self, pieces: int = PIECES, pause: float = PAUSE_SECONDS) -> None:
        self._pieces = pieces
        self._pause = pause
        self._left = pieces
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_turning = False

    async def next(self) -> None:
        """Returns when it is the caller's turn to do one piece."""
        loop = asyncio.get_running_loop()
        if not self._is_turning:
            self._is_turning = True
            loop.call_later(self._pause, self._turn)
        if self._left and not self._waiting:
            self._left -= 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _turn(self) -> None:
        used = self._left < self._pieces
        self._left = self._pieces
        while self._left and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        self._is_turning = used or bool(self._waiting) or self._left < self._pieces
        if self._is_turning:
            asyncio.get_running_loop().call_later(self._pause, self._turn)
