"""The answer to a List as it came over the wire: where each record lies, and whose it is.

Most records of a long list are those of the list before. A caller that compares their bytes need
not decode them, so here nothing is decoded: a page is one piece of bytes and the places of its
records. Bytes that are not a list are refused as a whole.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Final

_ID: Final = 0x0A
"""Field 1 of a record, a text: its id, which comes first where fields are written in order."""
_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5
_MACHINES: Final = 1
_REVISION: Final = 2


class GarbageError(ValueError):
    """Bytes that are not a list of machines."""


@dataclass(slots=True)
class Page:
    """One answer, read as far as was needed. Record i lies at `starts[i]:ends[i]`."""

    payload: bytes = field(repr=False)
    starts: array[int] = field(default_factory=lambda: array("q"), repr=False)
    ends: array[int] = field(default_factory=lambda: array("q"), repr=False)
    revision: bytes = field(default=b"", repr=False)
    at: int = 0
    """Up to where it has been read."""

    def __len__(self) -> int:
        return len(self.starts)

    def record(self, index: int) -> bytes:
        """One record as the provider wrote it."""
        return self.payload[self.starts[index] : self.ends[index]]

    def read(self, most: int) -> bool:
        """Find so many more records; whether there may be others after them."""
        payload, at, size = self.payload, self.at, len(self.payload)
        until = len(self.starts) + most
        while at < size and len(self.starts) < until:
            tag, at = _varint(payload, at)
            number, kind = tag >> 3, tag & 7
            if kind != _LENGTH:
                at = _past(payload, at, kind)
                continue
            length, at = _varint(payload, at)
            end = at + length
            if end > size:
                raise GarbageError(f"a field of {length} bytes at {at} of {size} is cut off")
            if number == _MACHINES:
                self.starts.append(at)
                self.ends.append(end)
            elif number == _REVISION:
                self.revision = payload[at:end]
            at = end
        self.at = at
        return at < size


def id_of(record: bytes) -> str:
    """The id a record opens with; empty when it opens with something else."""
    if len(record) < 2 or record[0] != _ID:
        return ""
    length, at = record[1], 2
    if length >= 0x80:
        try:
            length, at = _varint(record, 1)
        except GarbageError:
            return ""
    try:
        return record[at : at + length].decode() if at + length <= len(record) else ""
    except UnicodeDecodeError:
        return ""


def _varint(payload: bytes, at: int) -> tuple[int, int]:
    """The number at a place, and the place after it."""
    if at < len(payload) and payload[at] < 0x80:
        return payload[at], at + 1
    number = shift = 0
    while at < len(payload) and shift < 64:
        byte = payload[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    raise GarbageError(f"the number before byte {at} has no end")


def _past(payload: bytes, at: int, kind: int) -> int:
    """The place after a field that holds no bytes; unknown fields are passed over."""
    if kind == _VARINT:
        return _varint(payload, at)[1]
    width = {_EIGHT: 8, _FOUR: 4}.get(kind)
    if width is None or at + width > len(payload):
        raise GarbageError(f"the field before byte {at} is of kind {kind}, which is none or cut")
    return at + width
