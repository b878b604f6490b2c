"""Classes: machines with the same attributes share one, so that requirements are matched against
a few hundred classes instead of half a million machines.

A class holds everything of a machine that is not its own: offering, labels (topology labels with
many values apart), taints, what it offers, price and interruption probability. Slots of classes
that lost their last machine are used again; ``epoch`` says when a slot last changed its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bigfleet.model.demand.taints import Taint
from bigfleet.model.machine import CapacityType

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
Offering = tuple[str, str, str, CapacityType]
"""Provider, instance type, zone, capacity type: what stock-outs and drain times are known by."""
Pool = tuple[str, str]
"""Provider and region: what a quota slice is about."""


@dataclass(frozen=True)
class ClassTable:
    """Columns over classes; texts and mappings beside them for what is looked up once per cycle."""

    price: I64
    """Micro-dollars per hour."""
    probability: npt.NDArray[np.float64]
    capacity_type: npt.NDArray[np.int8]
    offering: I32
    pool: I32
    epoch: I64
    """A number that grows whenever the slot comes to mean something else."""
    whole: I64
    """[class, resource]: what a machine gives, in whole units, rounded down ..."""
    milli: I32
    """... and the thousandths above that."""
    labels: tuple[Mapping[str, str], ...]
    """A slot that comes to mean something else gets another mapping."""
    taints: tuple[tuple[Taint, ...], ...]
    offerings: tuple[Offering, ...]
    pools: tuple[Pool, ...]
    version: int = 0

    def __len__(self) -> int:
        return len(self.price)
