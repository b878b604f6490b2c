"""Files and folders that hold the state of a process: for their owner alone, whatever the umask."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

OWNER_ONLY_FILE: Final = 0o600
OWNER_ONLY_FOLDER: Final = 0o700


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing. One that is there keeps its rights."""
    if path.is_dir():
        return
    make_folder(path.parent)
    try:
        path.mkdir(mode=OWNER_ONLY_FOLDER)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    path.chmod(OWNER_ONLY_FOLDER)


def open_to_append(path: Path) -> int:
    """A descriptor that appends to a file of the owner's alone; the caller closes it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    file = os.open(path, flags, OWNER_ONLY_FILE)
    # Rights of a file that belongs to another user are that user's to set.
    if os.fstat(file).st_uid == os.geteuid():
        os.fchmod(file, OWNER_ONLY_FILE)
    return file
