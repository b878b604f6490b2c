"""A file that is appended to and set aside when it has grown: audit.jsonl, audit.jsonl.1, ...

Blocking; for use away from the event loop. Lines are whole: a file is only set aside between two
appends, and a write that failed half way (a full disk) is cut off again. Its owner alone reads it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from bigfleet_base.files import open_to_append

MOST_BYTES: Final = 64 * 1024 * 1024
KEPT: Final = 5


class RotatingFile:
    """Appends; keeps the file and so many older ones."""

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES, kept: int = KEPT) -> None:
        self._path = path
        self._most = most_bytes
        self._kept = kept

    def __call__(self, content: bytes) -> None:
        """Add to the end."""
        size = self._path.stat().st_size if self._path.exists() else 0
        if size and size + len(content) > self._most:
            self._set_aside()
            size = 0
        try:
            with os.fdopen(open_to_append(self._path), "ab") as file:
                file.write(content)
        except OSError:
            self._cut(size)
            raise

    def _set_aside(self) -> None:
        older = [self._path.with_name(f"{self._path.name}.{n}") for n in range(1, self._kept + 1)]
        for newer, name in zip(reversed([self._path, *older[:-1]]), reversed(older), strict=True):
            if newer.exists():
                newer.replace(name)

    def _cut(self, size: int) -> None:
        try:
            with self._path.open("r+b") as file:
                file.truncate(size)
        except OSError:
            return
