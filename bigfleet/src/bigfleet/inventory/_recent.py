"""Machines that were read or written lately, as values: they need not be put together again.

A machine that something is done to is asked for half a dozen times within a second, and putting one
together of two dozen columns costs more than anything else on its way. Whatever writes a row here
gives its new value or takes the old one away; what is not here is read from the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from bigfleet.model.machine import Machine

MOST: Final = 4096
"""About 10 MB."""


class Recent:
    """Values by row; the one that came first goes first."""

    __slots__ = ("_most", "_values", "get")

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._values: dict[int, Machine] = {}
        self.get = self._values.get

    def keep(self, row: int, machine: Machine) -> None:
        """This is what a row holds now."""
        values = self._values
        if row not in values and len(values) >= self._most:
            del values[next(iter(values))]
        values[row] = machine

    def keep_all(self, rows: Sequence[int], machines: Sequence[Machine]) -> None:
        """The same for many; of very many none is kept."""
        if len(rows) > self._most // 4:
            self.drop(rows)
            return
        for row, machine in zip(rows, machines, strict=True):
            self.keep(row, machine)

    def drop(self, rows: Iterable[int]) -> None:
        """These rows were written elsewhere."""
        if self._values:
            for row in rows:
                self._values.pop(row, None)

    def clear(self) -> None:
        """All rows were."""
        self._values.clear()
