"""By which bytes each machine of the book was last seen: one number per row of the inventory.

A digest says: what is in the book came from this very record and nothing has touched the machine
since. So whatever changes a machine marks its digest as touched, and the digest covers the id, so
that a row used again is not mistaken for the machine it held before.
"""

from __future__ import annotations

from array import array
from typing import Final

_UNTOUCHED: Final = 1
"""The lowest bit of every digest; whatever touches the machine takes it away."""


def digest_of(record: bytes, salt: int) -> int:
    """The digest of a record; the salt makes equal records of two providers different."""
    return (hash(record) ^ salt) | _UNTOUCHED


class Digests:
    """64 bits per row, 0 for none."""

    def __init__(self) -> None:
        self._column = array("q")

    def holds(self, row: int, digest: int) -> bool:
        """Whether the machine of a row is as in the record with this digest."""
        return row < len(self._column) and self._column[row] == digest

    def held(self, row: int, digest: int) -> bool:
        """Whether it was, when a record of it was last taken, whatever was done to it since."""
        return row < len(self._column) and self._column[row] | _UNTOUCHED == digest

    def set(self, row: int, digest: int) -> None:
        """The machine of a row is now as in this record."""
        column = self._column
        if row >= len(column):
            column.frombytes(bytes(8 * (row + 1 + row // 4 - len(column))))
        column[row] = digest

    def reset(self, row: int) -> None:
        """The machine of a row is as in no record."""
        if 0 <= row < len(self._column):
            self._column[row] &= ~_UNTOUCHED

    def clear(self) -> None:
        """No machine is as in any record: everything has to be looked at again."""
        self._column = array("q")
