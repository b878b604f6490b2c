"""Lines of files that are appended to: each has a checksum, and a crash may cut the last one."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class LinesRead(Generic[T]):
    """What a file holds."""

    lines: list[tuple[bytes, T]] = field(default_factory=list)
    """Each good line with its end, and what it says."""
    damaged: list[int] = field(default_factory=list)
    """The numbers of lines that are not what was written."""
    torn: bool = False
    """The end was cut off. It was never acknowledged, and nothing may be appended to it."""


def sealed(body: bytes) -> bytes:
    """A line of its own. The body has no end of line in it, as JSON has none."""
    return b"%08x %b\n" % (zlib.crc32(body), body)


def read_lines(content: bytes, parse: Callable[[bytes], T | None]) -> LinesRead[T]:
    """The good lines of a file; `parse` answers None to a body it cannot read."""
    found: LinesRead[T] = LinesRead()
    *lines, rest = content.split(b"\n")
    found.torn = bool(rest)
    for number, line in enumerate(lines, 1):
        body = line[9:]
        parsed = parse(body) if line[:9] == b"%08x " % zlib.crc32(body) else None
        if parsed is None:
            found.damaged.append(number)
        else:
            found.lines.append((line + b"\n", parsed))
    if found.damaged and found.damaged[-1] == len(lines) and not rest:
        # The end of what was under way when the machine lost power.
        found.damaged.pop()
        found.torn = True
    return found
