"""Ports for test servers that no other process will take.

They lie below the range from which the kernel takes ports for outgoing connections, and a lock on a
file says that one is taken, for all test runs of a machine. The lock goes with the process.
"""

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import Final, TextIO

FIRST: Final = 21_000
LAST: Final = 28_999


class NoPortError(Exception):
    """All ports of the range are taken."""


class Port:
    """A port on loopback, ours until it is given back."""

    def __init__(self, number: int, lock: TextIO) -> None:
        self.number = number
        self._lock = lock

    def give_back(self) -> None:
        """Let others take it."""
        self._lock.close()


def take() -> Port:
    """A port that is free now and will not be taken by another test."""
    folder = Path(tempfile.gettempdir()) / f"bigfleet-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for number in random.sample(range(FIRST, LAST + 1), LAST + 1 - FIRST):
        lock = (folder / str(number)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        if _is_free(number):
            return Port(number, lock)
        lock.close()
    raise NoPortError(f"every port from {FIRST} to {LAST} on loopback is taken")


def _is_free(number: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", number))
        except OSError:
            return False
        return True
