"""Labels with many values, each a column of its own, so that racks do not multiply classes.

Which labels those are is said by the owner of the inventory, or found out: a label with more than
MOST_VALUES values becomes a column. Values are numbers in a list of names per label; a list that
has outgrown its machines is made again, as another object.

What every class has (instance type, zone, capacity type) is never topology.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.inventory._classes import ClassSlots
from bigfleet.inventory._column import Column
from bigfleet.inventory.errors import InventoryError
from bigfleet.model.columns import Names
from bigfleet.model.machine import LABEL_CAPACITY_TYPE, LABEL_INSTANCE_TYPE, LABEL_ZONE

I8 = npt.NDArray[np.int8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

DEFAULT_TOPOLOGY_KEYS: Final = (
    "topology.bigfleet/rack",
    "topology.kubernetes.io/rack",
    "kubernetes.io/hostname",
)
MOST_VALUES: Final = 256
"""With more values than this a label becomes a topology column, so that classes stay few."""
ALWAYS_MATCHABLE: Final = frozenset({LABEL_INSTANCE_TYPE, LABEL_ZONE, LABEL_CAPACITY_TYPE})
_SPARE_NAMES: Final = 1024
_BYTES_PER_NAME: Final = 160
"""A short text with its places in a list and in a dict, on CPython with 64 bits."""


class TopologyColumns:
    """Topology columns by label. A label without values has no column yet."""

    __slots__ = ("_columns", "_keys", "_names", "_room", "most_values")

    def __init__(self, keys: Iterable[str], most_values: int = MOST_VALUES) -> None:
        self.most_values = most_values
        self._keys = dict.fromkeys(keys)
        self._columns: dict[str, Column[np.int32]] = {}
        self._names: dict[str, Names] = {}
        self._room = 0
        for key in self._keys:
            if key in ALWAYS_MATCHABLE:
                raise InventoryError(
                    f"{key!r} is part of every machine's class: name other labels as topology keys"
                )

    @property
    def keys(self) -> Sequence[str]:
        """The labels that are topology."""
        return tuple(self._keys)

    def names(self, key: str) -> Names:
        """The values of a label seen so far."""
        found = self._names.get(key)
        if found is None:
            found = self._names[key] = Names()
        return found

    def reserve(self, rows: int) -> None:
        """Room for this many rows."""
        self._room = max(self._room, rows)
        for column in self._columns.values():
            column.reserve(rows)

    def write(self, rows: I64, values: Mapping[str, I32]) -> None:
        """Set these rows; a label that is not among the values is absent."""
        for key in values:
            self._column(key)
        for key, column in self._columns.items():
            column.write(rows, values.get(key, -1))

    def erase(self, rows: I64) -> None:
        """Take all labels from these rows."""
        self.write(rows, {})

    def labels_of(self, row: int) -> dict[str, str]:
        """The topology labels of a row."""
        numbers = {key: int(column.data[row]) for key, column in self._columns.items()}
        return {key: self._names[key][n] for key, n in numbers.items() if n >= 0}

    def promote(self, key: str, classes: ClassSlots, cls: Column[np.int32], state: I8) -> None:
        """Make a label that was part of classes a column."""
        slots, values = classes.split_off(key)
        self._keys[key] = None
        names = self.names(key)
        numbers = np.array([-1 if v is None else names.of(v) for v in values], np.int32)
        rows = np.flatnonzero(state)
        if not len(rows):
            return
        mine = cls.data[rows]
        self._column(key).write(rows, numbers[mine])
        cls.write(rows, slots[mine])

    def lend(self, rows: int) -> tuple[Mapping[str, I32], Mapping[str, Names]]:
        """The columns and the lists of names, whatever happens later."""
        columns = {key: column.lend(rows) for key, column in self._columns.items()}
        names = {key: self._names[key] for key in columns}
        return MappingProxyType(columns), MappingProxyType(names)

    def squeeze(self, rows: int, alive: int) -> None:
        """Drop names no machine has, where they have become the greater part."""
        for key, column in self._columns.items():
            old = self._names[key]
            if len(old) <= 2 * alive + _SPARE_NAMES:
                continue
            used = np.unique(column.data[:rows])
            used = used[used >= 0]
            names, numbers = Names(), np.full(len(old) + 1, -1, np.int32)
            for number in used.tolist():
                numbers[number] = names.of(old[number])
            # Number -1, absent, reads the last entry, which is -1.
            column.replace(numbers[column.data])
            self._names[key] = names

    def sizes(self) -> dict[str, int]:
        """Bytes of each column."""
        return {key: column.nbytes for key, column in self._columns.items()}

    @property
    def names_nbytes(self) -> int:
        """About how much the names of all values take."""
        return _BYTES_PER_NAME * sum(map(len, self._names.values()))

    def _column(self, key: str) -> Column[np.int32]:
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = Column(np.int32, -1)
            column.reserve(self._room)
        return column
