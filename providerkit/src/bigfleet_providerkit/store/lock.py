"""One process per state file: an exclusive lock held for the life of the process.

The lock lies beside the state (`PATH.lock`) and names its holder, so that the error of a second
process says which one to look for. The kernel releases it when the process ends, however it ends.
"""

import fcntl
import os
import socket
from pathlib import Path
from typing import IO

from bigfleet_providerkit.errors import StateError


class StateLock:
    """Held from `acquire` to `release`."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._path = state.with_name(state.name + ".lock")
        self._file: IO[str] | None = None

    def acquire(self) -> None:
        """Take the lock, or say who has it."""
        try:
            file = open(self._path, "a+", encoding="utf-8", opener=_owner_only)  # noqa: SIM115
        except OSError as error:
            raise StateError(
                f"state file {self._state}: cannot create {self._path.name}: {error.strerror}; "
                "the folder must exist and be writable"
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise StateError(f"state file {self._state} is in use by {holder}") from error
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()} (host {socket.gethostname()})\n")
        file.flush()
        self._file = file

    def release(self) -> None:
        """Let go; the file stays, since removing it would race with the next holder."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _owner_only(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor
