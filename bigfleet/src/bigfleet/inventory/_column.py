"""One typed column with copy-on-write, and its sparse sister for values few machines have.

A snapshot borrows columns as read-only views. The first write to a column while a snapshot still
holds such a view goes to a copy; once all views are gone, writes stay in place. Views are made
over a memoryview on purpose: numpy then keeps the view alive as the base of everything sliced
from it, so a weak reference to the view knows of every reader.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", bound=np.generic)
Values = npt.NDArray[np.generic] | int | bool

_SLACK = 8
"""A full column grows by an eighth: little to spare at half a million rows, few copies."""
_BYTES_PER_ENTRY = 160
"""A dict slot with both of its integers, on CPython with 64 bits."""


def readonly(array: npt.NDArray[T]) -> npt.NDArray[T]:
    """The same array, for reading only from now on."""
    array.flags.writeable = False
    return array


class Column(Generic[T]):
    """A growing array; `fill` is the value of a row that was never written."""

    __slots__ = ("_data", "_dtype", "_fill", "_lent")

    def __init__(self, dtype: type[T], fill: int = 0) -> None:
        self._dtype = dtype
        self._fill = fill
        self._data: npt.NDArray[T] = np.empty(0, dtype)
        self._lent: list[weakref.ref[npt.NDArray[T]]] = []

    @property
    def data(self) -> npt.NDArray[T]:
        """All rows there is room for; to be read and passed to kernels, never written."""
        return self._data

    @property
    def nbytes(self) -> int:
        return self._data.nbytes

    def reserve(self, rows: int) -> None:
        """Room for this many rows."""
        room = len(self._data)
        if rows <= room:
            return
        # The first filling of an empty column is a load, which knows its size.
        size = rows if room == 0 else max(rows, room + room // _SLACK + 64)
        self.replace(np.full(size, self._fill, self._dtype), keep=room)

    def replace(self, data: npt.NDArray[T], keep: int = 0) -> None:
        """Other values from now on, the first `keep` of them as they were."""
        data[:keep] = self._data[:keep]
        self._data = data
        self._lent = []

    def write(self, rows: npt.NDArray[np.int64], values: Values) -> None:
        """Set these rows. Writing what is there already costs no copy."""
        if any(view() is not None for view in self._lent):
            if bool((self._data[rows] == values).all()):
                return
            self.replace(self._data.copy())
        self._lent = []
        self._data[rows] = values

    def put(self, row: int, value: int) -> None:
        """The same for one row, at a fraction of the cost."""
        if self._lent:
            if any(view() is not None for view in self._lent):
                if self._data[row] == value:
                    return
                self.replace(self._data.copy())
            self._lent = []
        self._data[row] = value

    def erase(self, rows: npt.NDArray[np.int64]) -> None:
        """Set these rows to the fill value."""
        self.write(rows, self._fill)

    def lend(self, rows: int) -> npt.NDArray[T]:
        """A read-only view of the first rows that no later write changes.

        The same array as before while nothing was written and the former one is still held.
        """
        alive = [view for ref in self._lent if (view := ref()) is not None]
        for view in alive:
            if len(view) == rows:
                return view
        if rows == 0:
            return readonly(np.empty(0, self._dtype))
        lent = np.frombuffer(self._data.data.toreadonly(), self._dtype, rows)
        self._lent = [weakref.ref(view) for view in (*alive, lent)]
        return lent


class Sparse:
    """Row -> number for what few rows have; copied on the first write after it was lent."""

    __slots__ = ("_is_lent", "_values")

    def __init__(self) -> None:
        self._values: dict[int, int] = {}
        self._is_lent = False

    @property
    def nbytes(self) -> int:
        return len(self._values) * _BYTES_PER_ENTRY

    def get(self, row: int) -> int:
        """The number of a row, 0 for none."""
        return self._values.get(row, 0)

    def write(self, rows: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> None:
        """Set these rows; 0 is none."""
        some = numbers != 0
        if not self._values and not some.any():
            return
        added = dict(zip(rows[some].tolist(), numbers[some].tolist(), strict=True))
        # Looked up from the smaller side: few rows have a number, or few rows are written.
        if len(self._values) < len(rows):
            cleared = self._values.keys() & set(rows[~some].tolist())
        else:
            cleared = {row for row in rows[~some].tolist() if row in self._values}
        if not added and not cleared:
            return
        if self._is_lent:
            self._values, self._is_lent = dict(self._values), False
        for row in cleared:
            del self._values[row]
        self._values.update(added)

    def put(self, row: int, number: int) -> None:
        """Set one row; 0 is none."""
        if self._values.get(row, 0) == number:
            return
        if self._is_lent:
            self._values, self._is_lent = dict(self._values), False
        if number:
            self._values[row] = number
        else:
            del self._values[row]

    def lend(self) -> Mapping[int, int]:
        """A read-only view that no later write changes."""
        self._is_lent = True
        return MappingProxyType(self._values)
