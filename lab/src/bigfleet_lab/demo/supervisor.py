"""Starts the processes of a demo, restarts what dies, and ends all of them.

All are in one process group, so Ctrl-C in a terminal reaches everybody at once; the rest
after a few seconds is killed. Should the supervisor itself be killed, the kernel (where it is
Linux) and the closed standard input of the simulated parts end the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from bigfleet.cli.errors import FailureError
from bigfleet_lab.demo.layout import DemoProcess

Say = Callable[[str], None]
ENDS_WITHIN: Final = 3.5
_YOUNG: Final = 5.0
"""A process that ends before it is so old did not start well."""
_TRIES: Final = 3
_LAST_LINES: Final = 3
_DIE_WITH_PARENT: Final = 1


class Process:
    """One part, over all its lives."""

    def __init__(self, part: DemoProcess, log: Path, say: Say) -> None:
        self.part = part
        self.process: asyncio.subprocess.Process | None = None
        self.starts = 0
        self.hold = 0.0
        """How long it stays down before its next start; set by who killed it."""
        self._log, self._say = log, say
        self._expected = False

    @property
    def pid(self) -> int | None:
        """Of the present life."""
        running = self.process is not None and self.process.returncode is None
        return self.process.pid if running and self.process is not None else None

    async def live(self) -> None:
        """Start it, and again whenever it ends; raises when it does not start at all."""
        failures = 0
        while True:
            began = time.monotonic()
            code = await self._one_life()
            if self._expected:
                failures = 0
            elif time.monotonic() - began < _YOUNG:
                failures += 1
                if failures >= _TRIES:
                    raise FailureError(
                        f"{self.part.name} does not start: {self._tail()}. Where its state is "
                        "damaged, move the data folder away or choose another --data-dir"
                    )
            else:
                failures = 0
                self._say(f"{self.part.name} ended with code {code}; starting it again")
            pause, self.hold, self._expected = self.hold or 0.5, 0.0, False
            await asyncio.sleep(pause)

    async def _one_life(self) -> int:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            orders = asyncio.subprocess.PIPE if self.part.takes_orders else None
            self.process = await asyncio.create_subprocess_exec(
                *self.part.words,
                stdin=orders or asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=partial(_die_with_parent, os.getpid())
                if sys.platform == "linux"
                else None,
            )
        self.starts += 1
        return await self.process.wait()

    async def order(self, order: Mapping[str, object]) -> None:
        """Tell a simulated part what to do."""
        if self.process is None or self.process.stdin is None or self.pid is None:
            raise FailureError(f"{self.part.name} does not run at the moment: try again")
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        await self.process.stdin.drain()

    def strike(self, number: signal.Signals, down_seconds: float) -> None:
        """End this life on purpose; the next one begins after so many seconds."""
        if self.process is not None and self.pid is not None:
            self._expected, self.hold = True, down_seconds
            self.process.send_signal(number)

    def send(self, number: signal.Signals) -> None:
        """A signal to whatever runs."""
        if self.process is not None and self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    def _tail(self) -> str:
        lines = self._log.read_text("utf-8", "replace").splitlines()[-_LAST_LINES:]
        said = " / ".join(line.strip() for line in lines if line.strip())
        return f"{said or 'it says nothing'} (log: {self._log})"


class Supervisor:
    """All processes of a demo."""

    def __init__(
        self, parts: tuple[DemoProcess, ...], log: Callable[[str], Path], say: Say
    ) -> None:
        self._processes = {part.name: Process(part, log(part.name), say) for part in parts}

    def __getitem__(self, name: str) -> Process:
        return self._processes[name]

    def pids(self) -> dict[str, int | None]:
        """Who runs."""
        return {name: process.pid for name, process in self._processes.items()}

    async def run(self, stop: asyncio.Event) -> None:
        """Keep everything alive until told to stop; none is left when it returns."""
        lives = [asyncio.create_task(each.live()) for each in self._processes.values()]
        stopping = asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait((*lives, stopping), return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stopping}:
                task.result()
        finally:
            for task in (*lives, stopping):
                task.cancel()
            await asyncio.gather(*lives, stopping, return_exceptions=True)
            await self._end()

    async def up(self, seconds: float, told: Callable[[DemoProcess], None]) -> None:
        """Return when every part that listens can be reached."""
        listening = [each.part for each in self._processes.values() if each.part.address]
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for part in listening:
                group.create_task(_reachable(part, told))

    async def _end(self) -> None:
        processes = list(self._processes.values())
        for each in processes:
            each.send(signal.SIGTERM)
        waits = [each.process.wait() for each in processes if each.process is not None]
        ends = asyncio.gather(*waits, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(ends), ENDS_WITHIN)
        for each in processes:
            each.send(signal.SIGKILL)
        await ends


async def _reachable(part: DemoProcess, told: Callable[[DemoProcess], None]) -> None:
    host, _, port = part.address.rpartition(":")
    while True:
        try:
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        except OSError:
            await asyncio.sleep(0.1)
            continue
        writer.close()
        told(part)
        return


def _die_with_parent(parent: int) -> None:
    """In the child, before it becomes another program: a signal when its parent dies."""
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, int(signal.SIGTERM), 0, 0, 0)
    # Dead before the signal was asked for. In a container the parent itself may be process 1.
    if os.getppid() != parent:
        os._exit(1)
