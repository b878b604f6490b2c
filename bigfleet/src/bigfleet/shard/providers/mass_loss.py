"""When a List omits many machines at once, they are kept until three full Lists agree.

A provider that suddenly lists far fewer bound machines has more likely lost its connection to a
part of its substrate than lost the machines. So each of them is removed only after three full
Lists in a row without it, even when most of the others are back by then; a machine that is listed
again starts from the beginning. The rule does not apply to a machine that the provider reports as
Failed: that is a statement about the machine, not a conclusion from its absence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
B = npt.NDArray[np.bool_]

SHARE: Final = 0.30
LEAST: Final = 10
LISTS: Final = 3


@dataclass(frozen=True, slots=True)
class LossVerdict:
    """Which of the absent machines are gone, and which may only be out of sight."""

    gone: I64
    held: I64


class MassLoss:
    """The rule for one provider. Machines are numbers: rows of the inventory."""

    def __init__(self) -> None:
        self._rows: I64 = np.empty(0, np.int64)
        self._lists: I64 = np.empty(0, np.int64)

    @property
    def holding(self) -> int:
        """How many machines are held at present."""
        return len(self._rows)

    def judge(self, absent: I64, is_bound: B, bound: int) -> LossVerdict:
        """A full List came without these machines; `bound` is how many of the provider's are bound.

        `absent` names no row twice; `is_bound` says of each whether it serves a cluster.
        """
        lists = self._lists_without(absent)
        believed = lists >= LISTS
        if not is_mass_loss(int(is_bound.sum()), bound):
            # So few are gone, but for those that vanished with many: a partition heals in parts.
            believed |= lists == 1
        self._rows, self._lists = absent[~believed], lists[~believed]
        return LossVerdict(absent[believed], self._rows)

    def _lists_without(self, absent: I64) -> I64:
        """Per machine, how many full Lists in a row came without it since it is held; 1 for new."""
        lists = np.ones(len(absent), np.int64)
        if len(self._rows):
            order = np.argsort(self._rows)
            place = np.searchsorted(self._rows, absent, sorter=order)
            before = order[np.minimum(place, len(order) - 1)]
            again = self._rows[before] == absent
            lists[again] += self._lists[before[again]]
        return lists


def is_mass_loss(absent: int, bound: int) -> bool:
    """Whether so many absent ones of so many bound ones are too many to be believed at once."""
    return absent >= LEAST and absent > SHARE * bound
