"""What a cluster will do later: timers of the running event loop that end with their owner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Agenda:
    """Actions at a later time. Cleared, none of them happens any more."""

    def __init__(self) -> None:
        self._next = 0
        self._handles: dict[int, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._handles)

    def after(self, seconds: float, action: Callable[[], None]) -> int:
        """Do this later; the number cancels it."""
        number = self._next
        self._next += 1

        def act() -> None:
            self._handles.pop(number, None)
            action()

        self._handles[number] = asyncio.get_running_loop().call_later(seconds, act)
        return number

    def cancel(self, number: int) -> None:
        """Not this one. Fine when it has happened already."""
        handle = self._handles.pop(number, None)
        if handle is not None:
            handle.cancel()

    def clear(self) -> None:
        """None of it."""
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()
