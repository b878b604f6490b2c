"""Numbers for distinct rows, and values kept while what they were made of stays the same.

Both only save time: a number says the same as the row it stands for, and a kept value is what would
be made again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
T = TypeVar("T")


def distinct(columns: Sequence[npt.NDArray[np.generic]]) -> tuple[I64, I64]:
    """Distinct rows of these columns in ascending order: a place of each, and which one a row is.

    Columns are joined one by one, each renumbered first: sorting integers is many times faster than
    sorting rows, and a number below the count of rows can be joined with another without overflow.
    """
    size = len(columns[0])
    first, number = np.zeros(min(1, size), np.int64), np.zeros(size, np.int64)
    for column in columns:
        if size and (column == column[0]).all():
            continue
        _, own = np.unique(column, return_inverse=True)
        _, first, number = np.unique(
            number * size + own.reshape(-1), return_index=True, return_inverse=True
        )
        number = number.reshape(-1)
    return first, number


@dataclass
class Memo(Generic[T]):
    """The last value made, and what it was made of.

    Arguments are compared as objects, so a change is seen only in a new object: the
    columns of a fleet and of a demand are values and are never written to. Plain numbers and texts
    go into one tuple, which is compared as a whole.
    """

    _of: tuple[object, ...] = ()
    _plain: tuple[object, ...] = ()
    _value: T | None = None

    def get(self, of: tuple[object, ...], plain: tuple[object, ...], make: Callable[[], T]) -> T:
        """The value made of these: the last one, or a new one."""
        value = self._value
        if value is None or plain != self._plain or not _same(of, self._of):
            value = self._value = make()
            self._of, self._plain = of, plain
        return value


def _same(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
