"""Programs that live as long as we do: started with a log file each, and gone when we are.

The kernel kills them when the thread that started them ends, however that happens; so one thread,
which lasts as long as this process, starts them all. A stop in order is tried first.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

PATIENCE: Final = 10.0
# Runs in the child before it becomes the program: "kill me when my parent is gone", and go at once
# if it went before that was said.
_ON_A_LEASH: Final = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.getppid() == int(sys.argv[1]) or os._exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)
_starter = ThreadPoolExecutor(1, thread_name_prefix="starter")


class ProcessDiedError(Exception):
    """A program ended that should run."""


class Process:
    """One program; can be stopped, killed, paused and started again."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self.log = log
        self.command = list(command)
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its number, while it runs."""
        return self._running.pid if self._running else None

    def start(self) -> None:
        """Start it, unless it runs."""
        if self._running is None:
            self._running = _starter.submit(self._open).result()

    def _open(self) -> subprocess.Popen[bytes]:
        leash = [sys.executable, "-S", "-E", "-c", _ON_A_LEASH, str(os.getpid())]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*(leash if sys.platform == "linux" else []), *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def check(self) -> None:
        """Raise if it has ended by itself, with its last words."""
        if self._running is not None and (code := self._running.poll()) is not None:
            raise ProcessDiedError(
                f"{self.name} ended with {code}; {self.log} says:\n{self.tail()}"
            )

    def tail(self, lines: int = 15) -> str:
        """The end of its log."""
        logged = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return "\n".join(logged.splitlines()[-lines:])

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, such as SIGSTOP and SIGCONT."""
        if self._running is not None and self._running.poll() is None:
            os.killpg(self._running.pid, number)

    def stop(self) -> None:
        """Ask it to end, and make it."""
        if self._running is None:
            return
        self.signal(signal.SIGTERM)
        try:
            self._running.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
        self._running = None

    def kill(self) -> None:
        """End it at once."""
        if self._running is None:
            return
        self.signal(signal.SIGKILL)
        self._running.wait()
        self._running = None
