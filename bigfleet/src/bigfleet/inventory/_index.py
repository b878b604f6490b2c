"""From machine id to row: a hash table of row numbers, four bytes a slot, over the packed ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.inventory._kernels import (
    EMPTY,
    erase_row,
    find_row,
    find_rows,
    first_duplicate,
    insert_rows,
)
from bigfleet.inventory._texts import PackedTexts, Texts

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


_RECENT: Final = 32_768
"""A few megabytes."""


class IdIndex:
    """Rows by id. Open addressing; at most two slots of three are taken."""

    __slots__ = ("_ids", "_recent", "_table", "_taken")

    def __init__(self, ids: Texts) -> None:
        self._ids = ids
        self._table = _empty_table(0)
        self._taken = 0
        self._recent: dict[str, int] = {}
        """Rows that were asked for by their id lately: a machine is asked for many times over."""

    @property
    def nbytes(self) -> int:
        return self._table.nbytes

    def find(self, machine_id: str) -> int:
        """The row of an id, or -1."""
        known = self._recent.get(machine_id)
        if known is not None:
            return known
        try:
            key = np.frombuffer(machine_id.encode(), np.uint8)
        except UnicodeEncodeError:
            return -1
        row = find_row(self._table, *self._ids.packed, key, 0, len(key))
        if row >= 0:
            if len(self._recent) >= _RECENT:
                self._recent.clear()
            self._recent[machine_id] = row
        return row

    def find_all(self, keys: PackedTexts) -> I64:
        """The row of each id, or -1."""
        return find_rows(self._table, *self._ids.packed, keys.blob, keys.starts, keys.lengths)

    def insert(self, rows: I64, alive: Callable[[], I64]) -> None:
        """Enter new rows, whose ids are set; `alive` gives all rows, these included."""
        self._taken += len(rows)
        if 3 * self._taken > 2 * len(self._table):
            # Built again, the table is rid of the slots of removed machines as well.
            rows = alive()
            self._table, self._taken = _empty_table(len(rows)), len(rows)
        insert_rows(self._table, *self._ids.packed, rows)

    def remove(self, row: int) -> None:
        """Take out a row, whose id is still set."""
        self._recent.pop(self._ids[row], None)
        erase_row(self._table, *self._ids.packed, row)


def find_duplicate(ids: PackedTexts) -> int:
    """The place of the first id that came before, or -1."""
    return first_duplicate(_empty_table(len(ids.starts)), ids.blob, ids.starts, ids.lengths)


def _empty_table(rows: int) -> I32:
    size = 64
    while 2 * size < 3 * rows + 64:
        size *= 2
    return np.full(size, EMPTY, np.int32)
