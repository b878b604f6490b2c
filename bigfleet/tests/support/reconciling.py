"""What tests of reconciling share: a disk in memory, and work done at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class MemoryDisk:
    """Files in memory. `full` makes every write fail; `tear` lets an append write a part first."""

    def __init__(self, files: dict[str, bytes] | None = None, *, full: bool = False) -> None:
        self.files = dict(files or {})
        self.full = full
        self.tear = 0
        self.appends = 0
        self.replaces = 0

    def read(self, name: str) -> bytes | None:
        """The content of a file."""
        return self.files.get(name)

    def replace(self, name: str, content: bytes) -> None:
        """All or nothing."""
        self._check()
        self.replaces += 1
        self.files[name] = content

    def append(self, name: str, content: bytes) -> None:
        """All, or a part and an error."""
        if self.full:
            self.files[name] = self.files.get(name, b"") + content[: self.tear]
        self._check()
        self.appends += 1
        self.files[name] = self.files.get(name, b"") + content

    def _check(self) -> None:
        if self.full:
            raise OSError(28, "No space left on device")


async def at_once(function: Callable[[], T]) -> T:
    """An offload that computes where it is called."""
    return function()
