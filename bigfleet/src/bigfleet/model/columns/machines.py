"""The machine columns one cycle reads: a consistent view that never changes again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.model.columns.classes import ClassTable
from bigfleet.model.columns.symbols import Names, Symbols

I8 = npt.NDArray[np.int8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


class Flag(IntFlag):
    """Bits of the ``flags`` column."""

    LEAVING = 1
    """In the grace of a reclaim or preemption, or Draining."""
    DO_NOT_DISRUPT = 2
    EXCLUDED = 4
    """A person keeps it out of every decision until a person includes it again."""
    ENDING = 8
    """Has an announced end; its time is in ``ending_at``."""
    NOT_READY = 16
    """Its cluster says it is not a Ready node; since when is in ``not_ready_since``."""
    FINAL = 128
    """Leaving, and not to be kept; 32 and 64 are the engine's own."""
    RESERVED = 256
    """Drained, or being drained, for another shard: kept for it until it is given."""
    BACKING_OFF = 512
    """Free, but an action on it failed: left alone until its wait is over."""


KEPT_OUT: Final = Flag.EXCLUDED | Flag.RESERVED | Flag.BACKING_OFF
"""Why a decision must leave a machine alone. Each bit has one owner, which alone sets and ends it:
a person, the coordination with other shards, and the memory of failed actions."""
UNAVAILABLE: Final = Flag.EXCLUDED | Flag.RESERVED
"""Not this shard's to use or to offer. A machine in back-off is: it only waits a moment."""


@dataclass(frozen=True)
class MachineColumns:
    """One row per machine slot; a row of state 0 is a hole."""

    symbols: Symbols
    classes: ClassTable
    state: I8
    cls: I32
    cluster: I32
    """Number in ``symbols.clusters``; -1 when unbound."""
    stamp: I32
    """Identity number; -1 without a stamp."""
    sequence: I64
    leaving_for: I32
    """Identity a leaving or Draining machine is meant for; -1 for none."""
    flags: npt.NDArray[np.uint16]
    idle_since: I64
    pods: I32
    """-1 when unknown."""
    topology: Mapping[str, I32]
    """Labels with many values: number in ``topology_names[key]``, -1 where absent."""
    topology_names: Mapping[str, Names]
    """A number means the same in two snapshots as long as this is the same object in both."""
    ending_at: Mapping[int, int]
    not_ready_since: Mapping[int, int]
    order: I32
    """Rows that hold a machine, by machine id, ascending; so shorter where there are holes."""
    rank: I32
    """Per row, its place in that order; -1 for a hole."""
    ids: Sequence[str]

    def __len__(self) -> int:
        return len(self.state)
