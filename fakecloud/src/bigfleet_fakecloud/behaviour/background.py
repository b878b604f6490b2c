"""Work beside the calls: services that run while a cloud is served, and tasks that calls begin.

A service (an SSH server, a loop of an agent) starts before the first call is answered and stops
after the last. A task may be begun by a handler, by an event of a life cycle or by a thread of a
test; it runs on the loop of the server. Work that is begun before there is a loop waits for it.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Protocol

Work = Callable[[], Coroutine[None, None, None]]
_log = logging.getLogger("bigfleet_fakecloud")


class Service(Protocol):
    """Something that runs as long as the cloud is served."""

    async def start(self) -> None:
        """Begin; raising stops the start of the cloud."""
        ...

    async def stop(self) -> None:
        """End, and let go of everything."""
        ...


class Background:
    """The services and tasks of one cloud."""

    def __init__(self) -> None:
        self._services: list[Service] = []
        self._started: list[Service] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: list[Work] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def serve(self, service: Service) -> None:
        """Run a service while the cloud is served."""
        self._services.append(service)

    def begin(self, work: Work) -> None:
        """Start a task, from any thread."""
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        with self._lock:
            loop = self._loop = self._loop or here
            if loop is None or loop.is_closed():
                self._waiting.append(work)
                return
        if loop is here:
            self._create(work)
        else:
            loop.call_soon_threadsafe(self._create, work)

    async def start(self) -> None:
        """Start the services, then what waits for a loop."""
        with self._lock:
            self._loop = asyncio.get_running_loop()
            waiting, self._waiting = self._waiting, []
        for service in self._services:
            await service.start()
            self._started.append(service)
        for work in waiting:
            self._create(work)

    async def stop(self) -> None:
        """Cancel the tasks, then stop the services, the newest first."""
        with self._lock:
            self._loop = None
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while self._started:
            await self._started.pop().stop()

    def _create(self, work: Work) -> None:
        task = asyncio.get_running_loop().create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a task of the fake cloud failed", exc_info=task.exception())
