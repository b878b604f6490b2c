"""A small file of the data directory that holds one value and is replaced as a whole.

Its new content is flushed before the change counts, so a crash leaves the old value or the new one.
A file that cannot be read is an error with its name, what is wrong and what to do; it is never
guessed at. Formats of older releases are read by `decode`. Files that are appended to, `journal`
and `restamps`, have lines with checksums instead (`checksummed_lines`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from google.protobuf.message import DecodeError

from bigfleet.observe.process import Offload
from bigfleet.shard.errors import DataFileError
from bigfleet.shard.ports import Disk

T = TypeVar("T")
_UNREADABLE = (ValueError, TypeError, KeyError, DecodeError)
"""What decoders raise; msgspec's errors are ValueErrors."""


class StateFile(Generic[T]):
    """One file. `decode` raises ValueError, or what a parser raises, for content it cannot read."""

    def __init__(
        self,
        disk: Disk,
        name: str,
        encode: Callable[[T], bytes],
        decode: Callable[[bytes], T],
        remedy: str,
        error: type[Exception] = DataFileError,
    ) -> None:
        """`remedy` says what to do about a file that cannot be read."""
        self._disk, self.name = disk, name
        self._encode, self._decode = encode, decode
        self._remedy, self._error = remedy, error
        self.size = 0

    def load(self) -> T | None:
        """What the file holds; None where there is no file. Blocking."""
        content = self._disk.read(self.name)
        if content is None:
            return None
        self.size = len(content)
        try:
            return self._decode(content)
        except _UNREADABLE as error:
            raise self._error(
                f"the file {self.name!r} in the data directory cannot be read ({error}): "
                f"{self._remedy}"
            ) from error

    def replace(self, value: T) -> None:
        """The file holds this from now on; flushed when it returns. Blocking."""
        self._disk.replace(self.name, self._encode(value))

    async def write(self, value: T, offload: Offload) -> None:
        """The same away from the event loop; the value is encoded before this waits."""
        content = self._encode(value)
        await offload(lambda: self._disk.replace(self.name, content))


class StoredIds:
    """A set of ids on disk, which counts as changed once that is durable. `load` first."""

    def __init__(self, disk: Disk, offload: Offload, name: str, remedy: str) -> None:
        self._file = StateFile(disk, name, _encoded, _decoded, remedy)
        self._offload = offload
        self._ids: frozenset[str] = frozenset()
        self._writing = asyncio.Lock()

    def load(self) -> None:
        """What was in the set before the restart. Blocking."""
        self._ids = self._file.load() or frozenset()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._ids))

    def __contains__(self, one: object) -> bool:
        return one in self._ids

    async def change(
        self,
        change: Callable[[frozenset[str]], frozenset[str]],
        written: Callable[[], None] = lambda: None,
    ) -> None:
        """Change the set; durable when it returns, else OSError and nothing changed.

        `written` is called once it is durable, before the next change begins.
        """
        async with self._writing:
            ids = change(self._ids)
            if ids != self._ids:
                await self._file.write(ids, self._offload)
                self._ids = ids
            written()


def _encoded(ids: frozenset[str]) -> bytes:
    return json.dumps(sorted(ids)).encode()


def _decoded(content: bytes) -> frozenset[str]:
    found = json.loads(content)
    if not isinstance(found, list):
        raise TypeError(f"it holds {type(found).__name__} instead of a list")
    return frozenset(map(str, found))
