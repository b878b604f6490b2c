"""Processes of the simulation: tasks that live, pause and die together.

A process is a name in the context that every callback carries, so whatever a process starts is its
own without anybody keeping a list. A crash is what kill -9 is: nothing of the process runs again,
not even its clean-up. What it had sent is on the network, what it had flushed is on its disk.
"""

from __future__ import annotations

import asyncio
import contextvars
import weakref
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, Final

PROCESS: Final[contextvars.ContextVar[Process | None]] = contextvars.ContextVar(
    "process", default=None
)


class Life(Enum):
    """Whether a process runs."""

    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"


class Process:
    """One life of one program. A restart is a new one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.life = Life.RUNNING
        self.steps = 0
        self._tasks: list[weakref.ref[asyncio.Task[Any]]] = []
        self._remains: list[asyncio.Task[Any]] = []
        self.held: list[Any] = []
        """Callbacks that wait for the end of a pause."""
        self._crash_at = -1
        self._at_death: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<{self.name} {self.life.value}>"

    @property
    def alive(self) -> bool:
        """Whether it may still do something, now or after a pause."""
        return self.life is not Life.DEAD

    def spawn(self, work: Coroutine[Any, Any, object], name: str) -> asyncio.Task[Any]:
        """Start a task that belongs to this process, whichever task starts it."""
        context = contextvars.copy_context()
        context.run(PROCESS.set, self)
        loop = asyncio.get_running_loop()
        return loop.create_task(work, name=f"{self.name}/{name}", context=context)

    def run(self, function: Callable[[], None]) -> None:
        """Call a function as if the process had."""
        context = contextvars.copy_context()
        context.run(PROCESS.set, self)
        context.run(function)

    def at_death(self, function: Callable[[], None]) -> None:
        """Called when the process dies: connections break, a disk tears."""
        self._at_death.append(function)

    def crash_after(self, steps: int) -> None:
        """Die after so many more callbacks of its own, between two of them."""
        self._crash_at = self.steps + steps

    def spare(self) -> None:
        """No death is ahead of it any more."""
        self._crash_at = -1

    def crash(self) -> None:
        """Die now."""
        if self.life is Life.DEAD:
            return
        self.life = Life.DEAD
        self.held.clear()
        # Kept, not collected: collecting would run its clean-up.
        self._remains = self.unfinished()
        for task in self._remains:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        for function in self._at_death:
            function()

    def pause(self) -> None:
        """Stop in the middle of everything."""
        if self.life is Life.RUNNING:
            self.life = Life.PAUSED

    def stepped(self) -> None:
        """One of its callbacks ran."""
        self.steps += 1
        if self.steps == self._crash_at:
            self.crash()

    def owns(self, task: asyncio.Task[Any]) -> None:
        """Remember a task of this process, without keeping it alive."""
        remember(self._tasks, task)

    def unfinished(self) -> list[asyncio.Task[Any]]:
        """Its tasks that have not ended."""
        return unfinished(self._tasks)


def remember(tasks: list[weakref.ref[asyncio.Task[Any]]], task: asyncio.Task[Any]) -> None:
    """Add a task to a list, which loses the ended ones each time it has doubled."""
    if len(tasks) >= 64 and len(tasks) & (len(tasks) - 1) == 0:
        tasks[:] = [weakref.ref(other) for other in unfinished(tasks)]
    tasks.append(weakref.ref(task))


def unfinished(tasks: list[weakref.ref[asyncio.Task[Any]]]) -> list[asyncio.Task[Any]]:
    """Those of a list that have not ended, in the order they were started."""
    return [task for ref in tasks if (task := ref()) is not None and not task.done()]
