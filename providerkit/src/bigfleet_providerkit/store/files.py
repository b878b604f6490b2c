"""The state file on disk: made whole or not at all, and readable by its owner alone.

A new file is made under another name, given its tables, and renamed into place, so an empty one is
never a start that was interrupted: it has lost what it held, and is refused with a remedy. Modes do
not depend on the umask; the log and the index that SQLite puts beside the file take the file's.
"""

import os
import sqlite3
from pathlib import Path

from bigfleet_providerkit.errors import StateError
from bigfleet_providerkit.store.schema import create_schema

OWNER_ONLY = 0o600


def make_file(path: Path) -> None:
    """Make the state file where there is none; StateError for an empty one."""
    if path.exists():
        if path.stat().st_size == 0:
            raise StateError(
                f"state file {path} is empty: it has lost what it held; restore a copy, or remove "
                "it to start without its marks and bindings"
            )
        return
    new = path.with_name(f"{path.name}.new")
    for left in (new, new.with_name(f"{new.name}-journal")):
        left.unlink(missing_ok=True)
    os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ONLY))
    new.chmod(OWNER_ONLY)
    connection = sqlite3.connect(new, isolation_level=None)
    try:
        create_schema(connection)
    finally:
        connection.close()
    new.replace(path)
    flush_names(path.parent)


def owner_only(path: Path) -> None:
    """Take everybody else's rights from a file that an older release or a person made."""
    for file in (path, *(path.with_name(path.name + beside) for beside in ("-wal", "-shm"))):
        # Rights of a file that belongs to another user are that user's to set.
        if file.exists() and file.stat().st_uid == os.geteuid():
            file.chmod(OWNER_ONLY)


def flush_names(folder: Path) -> None:
    """A name that was given in this folder survives a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
