"""Cuts a stream of bytes into lines, which is how a watch sends its events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, Protocol

from bigfleet.kube.errors import DecodeError

LONGEST_LINE: Final = 16 * 2**20
"""An object is at most 1.5 MiB in etcd; ten times that is not an object."""


class Chunks(Protocol):
    """Bytes as they arrive."""

    def iter_any(self) -> AsyncIterator[bytes]:
        """Whatever is there, as soon as it is."""


async def lines_of(chunks: Chunks, longest: int = LONGEST_LINE) -> AsyncIterator[bytes]:
    """Complete lines, without their ends; what follows the last end is dropped."""
    pieces: list[bytes] = []
    size = 0
    async for chunk in chunks.iter_any():
        first, *rest = chunk.split(b"\n")
        pieces.append(first)
        size += len(first)
        if size > longest:
            raise DecodeError(f"a line of a watch has more than {longest} bytes")
        if not rest:
            continue
        whole = b"".join(pieces)
        if whole:
            yield whole
        for line in rest[:-1]:
            if line:
                yield line
        pieces = [rest[-1]]
        size = len(rest[-1])
