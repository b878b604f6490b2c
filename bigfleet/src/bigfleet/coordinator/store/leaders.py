"""Who leads, for everybody in this process who wants to know: the last word, and every change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from bigfleet.coordinator.store.interface import Leader


class Leaders:
    """What one replica has heard. One side shows, any number of tasks watch."""

    def __init__(self) -> None:
        self._current: Leader | None = None
        self._revision = 0
        self._watchers: set[asyncio.Queue[Leader | None]] = set()

    @property
    def current(self) -> Leader | None:
        """Who leads as far as is known."""
        return self._current

    def show(self, leader: Leader | None, revision: int = 0) -> None:
        """Tell everybody, unless they know.

        News from several sources carry the revision they are of, so that old ones do not undo newer
        ones; news without a revision always count.
        """
        if 0 < revision < self._revision:
            return
        self._revision = revision
        if leader == self._current:
            return
        self._current = leader
        for watcher in self._watchers:
            watcher.put_nowait(leader)

    async def changes(self) -> AsyncIterator[Leader | None]:
        """Who leads, then every change."""
        watcher: asyncio.Queue[Leader | None] = asyncio.Queue()
        self._watchers.add(watcher)
        try:
            yield self._current
            while True:
                yield await watcher.get()
        finally:
            self._watchers.discard(watcher)
