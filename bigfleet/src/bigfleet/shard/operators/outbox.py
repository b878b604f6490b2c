"""Frames waiting for a session's writer: bounded, in order, newer ones in place of older ones.

A frame with a key takes the place of the queued frame with the same key, so a slow operator is told
how things are and not how they were. A frame without a key is never dropped; when there is no room
for one, the session cannot go on. What is fed in at leisure, a replay, waits for room instead.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import Final, Generic, TypeVar

F = TypeVar("F")

DEFAULT_BOUND: Final = 8192


REPLAYED: Final = 128
"""Frames of a replay that wait at the same time."""


class OutboxFullError(Exception):
    """A frame found no room and replaces nothing."""


class Outbox(Generic[F]):
    """The queue of one session. Any number put in, one takes out."""

    def __init__(self, bound: int = DEFAULT_BOUND) -> None:
        if bound < 2:
            raise ValueError(f"an outbox of {bound} frames cannot take a replay: use 2 or more")
        self.bound = bound
        self._few = min(bound // 2, REPLAYED)
        self._frames: OrderedDict[str | int, F] = OrderedDict()
        self._count = 0
        self._something = asyncio.Event()
        self._room = asyncio.Event()
        self._on_hand: deque[F] = deque()
        self._done = asyncio.Event()

    def __len__(self) -> int:
        return len(self._frames)

    def waiting(self) -> list[F]:
        """What is not on its way yet, in its order."""
        return [*self._on_hand, *self._frames.values()]

    def put(self, frame: F, key: str = "") -> None:
        """Queue a frame, in place of the one with its key; refused when there is no room."""
        frames = self._frames
        if key not in frames and len(frames) >= self.bound:
            raise OutboxFullError(f"{self.bound} frames wait and the operator does not read them")
        if key:
            frames[key] = frame
        else:
            self._count += 1
            frames[self._count] = frame
        if len(frames) == 1:
            self._something.set()

    async def take(self) -> F:
        """The frame that waits longest, once there is one."""
        frames = self._frames
        while not frames:
            self._something.clear()
            await self._something.wait()
        _, frame = frames.popitem(last=False)
        self._on_hand.append(frame)
        if len(frames) == self._few:
            self._room.set()
        return frame

    def sent(self) -> None:
        """The frame that was taken first is on its way."""
        self._on_hand.popleft()
        if not self._frames and not self._on_hand:
            self._done.set()

    async def flushed(self) -> None:
        """Returns when everything that was put in is on its way."""
        while self._frames or self._on_hand:
            self._done.clear()
            await self._done.wait()

    async def has_room(self) -> None:
        """Returns when few frames wait: a replay must neither fill the outbox nor the memory.

        The replays of all clusters come at once after a restart, frame by frame as they are read.
        """
        while len(self._frames) > self._few:
            self._room.clear()
            await self._room.wait()
