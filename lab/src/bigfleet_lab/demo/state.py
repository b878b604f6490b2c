"""Whether a data folder can be gone on with: the form of its state is written into it.

The form changes when an older folder would be misread. A folder of another form is refused before
anything starts, with what to do; nothing in it is touched. So is one in which a demo runs: two of
them would take each other's socket and stores. The mark also tells a demo's folder from that of a
fleet: neither goes on with the other's.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bigfleet.cli.errors import FailureError, InputError
from bigfleet.cli.processes.process import FORM_FILE

FORM: Final = "1"
_LOCK: Final = "demo.lock"
_OF_A_FLEET: Final = ("coordinator", "shard")


def take_folder(folder: Path) -> None:
    """Make the folder, or make sure that what is in it can be read."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mark = folder / FORM_FILE
        if not mark.exists() and any((folder / name).exists() for name in _OF_A_FLEET):
            raise InputError(
                f"{folder} holds a fleet that is not a demo, and a demo would change it: choose "
                "another --data-dir"
            )
        found = mark.read_text("utf-8").strip() if mark.exists() else FORM
        if found != FORM:
            raise InputError(
                f"{folder} holds state of form {found[:20]!r}, and this version reads form {FORM}: "
                "move it away, or choose another --data-dir"
            )
        mark.write_text(f"{FORM}\n", "utf-8")
    except OSError as error:
        raise FailureError(f"{folder}: {error.strerror}; choose another --data-dir") from None


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """No other process's for as long as this lasts; the kernel ends it with the process."""
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise FailureError(f"{folder}: {error.strerror}; choose another --data-dir") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 20, 0).decode(errors="replace").strip() or "unknown"
            raise FailureError(
                f"a demo runs in {folder} already (process {holder}): stop it, or choose another "
                "--data-dir"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(lock)
