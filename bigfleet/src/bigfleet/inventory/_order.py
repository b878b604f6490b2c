"""Rows by machine id, ascending, and each row's place in that order.

Kept by merging: rows that came and rows that went are noted, and the next reader pays one pass
over the order for all of them. A sort sees only the rows that came.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bigfleet.inventory._column import readonly
from bigfleet.inventory._kernels import places
from bigfleet.inventory._texts import Texts

I8 = npt.NDArray[np.int8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


class RowOrder:
    """The order of live rows; never written in place, so it is lent as it is."""

    __slots__ = ("_came", "_went", "order", "rank")

    def __init__(self) -> None:
        self.order: I32 = readonly(np.empty(0, np.int32))
        self.rank: I32 = readonly(np.empty(0, np.int32))
        self._came: list[I64] = []
        self._went: list[int] = []

    @property
    def nbytes(self) -> int:
        return self.order.nbytes + self.rank.nbytes

    def add(self, rows: I64) -> None:
        """Rows that hold a new machine."""
        self._came.append(rows)

    def drop(self, row: int) -> None:
        """A row that lost its machine."""
        self._went.append(row)

    def settle(self, ids: Texts, state: I8) -> None:
        """Merge what came and went; `state` tells which of these rows are still alive."""
        if not self._came and not self._went:
            return
        order = self.order
        if self._went:
            gone = np.zeros(len(state), np.bool_)
            gone[self._went] = True
            order = order[~gone[order]]
        new = np.zeros(len(state), np.bool_)
        for rows in self._came:
            new[rows] = True
        came = _by_id(np.flatnonzero(new & (state != 0)), ids)
        at = places(readonly(order), *ids.packed, came)
        order = np.insert(order, at, came.astype(np.int32))
        rank = np.full(len(state), -1, np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        self.order, self.rank = readonly(order), readonly(rank)
        self._came, self._went = [], []


def _by_id(rows: I64, ids: Texts) -> I64:
    texts = ids.lend(len(ids.packed[1]))
    key = list(texts) if len(rows) == len(texts) else {row: texts[row] for row in rows.tolist()}
    return np.array(sorted(rows.tolist(), key=key.__getitem__), np.int64)
