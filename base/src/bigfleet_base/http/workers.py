"""A few daemon threads that run handlers in the order in which requests came.

Not a ThreadPoolExecutor: the interpreter waits for its threads at exit, and a handler that hangs
must not keep a process alive. The queue is bounded by the number of connections, because every
connection has at most one request.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

Task = Callable[[], None]


class Workers:
    """Threads that are started as they are needed, at most so many."""

    def __init__(self, name: str, most: int) -> None:
        self._name, self._most = name, most
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._free = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []

    def submit(self, task: Task) -> None:
        """Run a task, which must not raise, on the next free thread."""
        if not self._free.acquire(blocking=False) and len(self._threads) < self._most:
            name = f"{self._name}-{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._tasks.put(task)

    def close(self) -> None:
        """Let every thread end after its present task; nothing waits for that."""
        for _ in self._threads:
            self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()
            self._free.release()
