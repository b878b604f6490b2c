"""Where a shard runs: a disk and a clock that outlive its processes, and one life after the other.

A host restarts its shard when it dies, gives every life a process of its own, and lets a life end
at the worst of moments: around a write, around a mutation, or by standing still until another life
has begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from sim.handle import ShardHandle
from sim.ports import SimClock, SimDisk
from sim.process import Process
from sim.streams import ShardEnd

if TYPE_CHECKING:
    from sim.world import World


class ShardLife(ShardHandle, Protocol):
    """A shard that can be run."""

    async def run(self) -> None:
        """Until cancelled."""
        ...

    async def serve(self, stream: ShardEnd) -> None:
        """One session to its end."""
        ...


class Mounted:
    """A disk as one process sees it. It can be taken away from under a process."""

    def __init__(self, disk: SimDisk, host: Host) -> None:
        self.disk = disk
        self.host = host
        self.on_write: Callable[[], None] | None = None

    def read(self, name: str) -> bytes | None:
        """The content of a file."""
        return self.disk.read(name)

    def replace(self, name: str, content: bytes) -> None:
        """Other content, whole."""
        self.disk.replace(name, content)
        self._written()

    def append(self, name: str, content: bytes) -> None:
        """More at the end."""
        self.disk.append(name, content)
        self._written()

    @property
    def writes(self) -> int:
        """How many there were."""
        return self.disk.writes

    def answered_later(self) -> AbstractContextManager[None]:
        """Writes made inside are under way until they are settled."""
        return self.disk.answered_later()

    def settle(self, first: int) -> None:
        """Writes after this number have been answered."""
        self.disk.settle(first)

    def _written(self) -> None:
        if self.on_write is not None:
            self.on_write()


Build = Callable[["World", Process, Mounted], ShardLife]


class Host:
    """One shard, in all its lives."""

    def __init__(self, world: World, name: str, build: Build, suffix: str) -> None:
        """`suffix` keeps the chances of hosts apart."""
        self.name = name
        self.clock = SimClock()
        self.disk = SimDisk(world.rng(f"disk{suffix}"))
        self.lives: list[ShardLife] = []
        self._world, self._build = world, build
        self._rng = world.rng(f"restarts{suffix}")
        self._mutations_until_crash = 0
        self._is_kept_down = False
        self._mounted: Mounted
        self._running: asyncio.Task[None]

    @property
    def life(self) -> ShardLife:
        """The newest."""
        return self.lives[-1]

    @property
    def is_up(self) -> bool:
        """Whether a life of it runs or stands still."""
        return bool(self.lives) and self.life.process.alive

    def start(self) -> None:
        """A new life of the shard, on the same disk."""
        self._is_kept_down = False
        process = Process(f"{self.name}.{len(self.lives) + 1}")
        mounted = Mounted(self.disk, self)
        self._world.trace.note(process.name, "starts")
        process.at_death(lambda: self._died(process, mounted))
        life = self._build(self._world, process, mounted)
        self.lives.append(life)
        self._mounted = mounted
        self._running = process.spawn(self._live(life), "run")
        self._world.board.listen(self.name, process, life.serve)

    async def _live(self, life: ShardLife) -> None:
        try:
            await life.run()
        except OSError as error:
            if not self.disk.full:
                self._world.trace.broken("run", f"{life.process.name} ended: {error!r}")
            self._world.trace.note(life.process.name, f"cannot run: {error}")
            self._world.later(0.0, life.process.crash)

    def _died(self, process: Process, mounted: Mounted) -> None:
        # Clusters come to the next life, or to one that waits already, and report dead nodes again.
        if self._world.phantoms_until:
            self._world.await_phantoms()
        self._world.trace.note(process.name, "dies")
        mounted.disk.crash()
        if self.life.process is process:
            self._world.owners.changed(None)
            self._world.later(self._rng.choice((0.1, 1.0, 10.0)), self._restart)

    def stop(self) -> None:
        """Ask the shard to stop, for good."""
        self._running.cancel()
        self._world.board.hang_up(self.life.process)

    def go_away(self) -> None:
        """Die, and stay so until it is started."""
        self._is_kept_down = True
        self.life.process.crash()

    def _restart(self) -> None:
        if not self.life.process.alive and not self._is_kept_down:
            self.start()

    # -- the worst of moments --------------------------------------------------------------------

    def crash_at_mutation(self, count: int) -> None:
        """Die when the count-th mutation from now leaves."""
        self._mutations_until_crash = count

    def sends(self, process: Process) -> None:
        """A mutation leaves this host."""
        if self._mutations_until_crash and process is self.life.process:
            self._mutations_until_crash -= 1
            if not self._mutations_until_crash:
                process.crash_after(self._rng.randint(1, 40))

    def crash_at_write(self, count: int) -> None:
        """Die around the count-th write from now."""
        left = [count]
        mounted, process = self._mounted, self.life.process

        def written() -> None:
            left[0] -= 1
            if left[0] == 0:
                process.crash_after(self._rng.randint(1, 4))

        mounted.on_write = written

    def replace(self) -> Callable[[], None]:
        """The shard stands still and another life of it begins; what wakes the first one up."""
        old, mounted = self.life.process, self._mounted
        old.pause()
        self._world.monitor.replaced(old)
        mounted.disk = self.disk.copy()
        self.start()

        def wake() -> None:
            self._world.loop.resume(old)
            self._world.later(self._rng.uniform(1.0, 40.0), old.crash)

        return wake

    def peace(self) -> None:
        """No caller waits for the worst of moments any more."""
        self.life.process.spare()
        self._mutations_until_crash = 0
        self._mounted.on_write = None

    def help(self) -> None:
        """Restart a shard whose log asks for it: a request whose double came first is fenced."""
        if self.is_up and self.life.fenced():
            self._world.trace.note(self.life.process.name, "is fenced and restarted")
            self.life.process.crash()
