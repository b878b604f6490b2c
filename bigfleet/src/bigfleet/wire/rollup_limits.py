"""How large a cluster's roll-up may be, and its size read off the bytes before they are decoded.

Decoding a roll-up costs the process several times its bytes and, for as long as the message is
parsed, everybody else's turn. So a frame that is beyond a limit is recognised by walking over the
lengths of its fields, which makes no objects. Whether a roll-up that is small enough may be taken
is decided by its reader (`bigfleet.shard.demand`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MIB: Final = 1024 * 1024
MAX_COUNTED: Final = 2_000_000
"""Rows that are counted; a second's work. Beyond them the answer says "more than"."""
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_ROLLUP_TAG: Final = 2 << 3 | _LENGTH
"""Field 2 of the operator's frame."""
_CLUSTER_TAG: Final = 1 << 3 | _LENGTH
_TIME_TAG: Final = 2 << 3 | _VARINT
_ROW_TAG: Final = 3 << 3 | _LENGTH
_INT64: Final = 2**64
_LONGEST_VARINT: Final = 10


@dataclass(frozen=True, slots=True)
class RollUpLimits:
    """What one cluster may ask for in one roll-up."""

    rows: int = 20_000
    requirement_sets: int = 2_000
    """Different sets of requirements and spread among its rows."""
    size: int = 64 * MIB
    """Bytes as they are sent; what is held of it is of the same order."""

    def problem(self, size: RollUpSize) -> OverLimit | None:
        """The first limit that a roll-up exceeds."""
        if size.size > self.size:
            return OverLimit("bytes", f"the roll-up has {size.size} bytes", self.size)
        if size.rows > self.rows:
            counted = f"more than {MAX_COUNTED}" if size.rows > MAX_COUNTED else str(size.rows)
            return OverLimit("rows", f"the roll-up has {counted} rows", self.rows)
        return None


@dataclass(frozen=True, slots=True)
class OverLimit:
    """Which limit a roll-up exceeds."""

    limit: str
    """`rows`, `requirement_sets` or `bytes`: a metric's label."""
    found: str
    most: int

    def __str__(self) -> str:
        return (
            f"{self.found}; this shard takes at most {self.most} {self.limit.replace('_', ' ')} of "
            "one cluster. The last accepted demand stays in force"
        )


@dataclass(frozen=True, slots=True)
class RollUpSize:
    """What the bytes of a frame say of the roll-up in it."""

    size: int
    rows: int
    cluster_id: bytes
    timestamp_unix_nanos: int


def size_of_rollup(frame: bytes) -> RollUpSize | None:
    """The size of the roll-up in an operator's frame; None where it holds none or is malformed."""
    try:
        return _walk_frame(frame)
    except (IndexError, ValueError):
        # The decoder will say what is wrong with it.
        return None


def _walk_frame(frame: bytes) -> RollUpSize | None:
    at, end, found = 0, len(frame), None
    while at < end:
        tag, at = _varint(frame, at)
        if tag != _ROLLUP_TAG:
            at = _skip(frame, at, tag, end)
            continue
        length, at = _varint(frame, at)
        if at + length > end:
            raise ValueError("cut off")
        # Several occurrences of one message are merged when they are decoded.
        found = _walk_rollup(frame, at, at + length, found)
        at += length
    return found


def _walk_rollup(frame: bytes, at: int, end: int, before: RollUpSize | None) -> RollUpSize:
    rows = 0 if before is None else before.rows
    size = (0 if before is None else before.size) + end - at
    cluster = b"" if before is None else before.cluster_id
    timestamp = 0 if before is None else before.timestamp_unix_nanos
    while at < end and rows <= MAX_COUNTED:
        tag = frame[at]
        if tag == _ROW_TAG:
            rows += 1
            length = frame[at + 1]
            at += 2
            if length > 127:
                length, at = _varint(frame, at - 1)
            at += length
        elif tag == _CLUSTER_TAG:
            length, at = _varint(frame, at + 1)
            cluster = frame[at : at + length]
            at += length
        elif tag == _TIME_TAG:
            timestamp, at = _varint(frame, at + 1)
        else:
            tag, at = _varint(frame, at)
            at = _skip(frame, at, tag, end)
    if timestamp >= _INT64 // 2:
        timestamp -= _INT64
    return RollUpSize(size, rows, cluster, timestamp)


def _skip(frame: bytes, at: int, tag: int, end: int) -> int:
    kind = tag & 7
    if kind == _VARINT:
        return _varint(frame, at)[1]
    if kind == _LENGTH:
        length, at = _varint(frame, at)
        return at + length
    if kind in (_FIXED32, _FIXED64):
        return at + (4 if kind == _FIXED32 else 8)
    raise ValueError(f"wire type {kind} at byte {at} of {end}")


def _varint(frame: bytes, at: int) -> tuple[int, int]:
    value = 0
    for number in range(_LONGEST_VARINT):
        byte = frame[at + number]
        value |= (byte & 0x7F) << 7 * number
        if byte < 128:
            return value, at + number + 1
    raise ValueError("a number of more than ten bytes")
