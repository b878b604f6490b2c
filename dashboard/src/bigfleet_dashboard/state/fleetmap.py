"""All machines of the fleet in one order, as the map draws them and lists filter them.

The order is by way of paying, zone, type, shard and id, and so stays the same while machines change
their state: a cell keeps its place. Above a limit a cell stands for all machines of a class, a
state and a cluster.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from bigfleet_dashboard.state.machines import CAPACITY, STATES, MachineTable
from bigfleet_dashboard.state.names import MachineClass, Names

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
N = TypeVar("N", np.int32, np.uint8)
MOST_CELLS: Final = 150_000
_MOST_SHORT: Final = 1 << 16
"""Classes that two bytes can number."""


@dataclass(frozen=True, slots=True)
class FleetMap:
    """Columns over all machines."""

    names: Names
    classes: tuple[MachineClass, ...]
    """Those of machines there are now, in the order of the map."""
    tables: tuple[MachineTable, ...]
    table: I32
    """Per machine the table it is in, and ..."""
    row: I32
    """... its row there."""
    state: U8
    cls: I32
    cluster: I32
    bucket: U8
    priority: I32
    price: npt.NDArray[np.float64]
    """Dollars per hour, by class."""

    @classmethod
    def of(cls, names: Names, tables: Sequence[MachineTable]) -> FleetMap:
        """The machines of these tables, in the order of the map."""
        filled = tuple(table for table in tables if len(table))
        numbers = [np.full(len(t), n, np.int32) for n, t in enumerate(filled)]
        rows = [np.arange(len(t), dtype=np.int32) for t in filled]
        classes = tuple(sorted({found for table in filled for found in table.classes}))
        number = {found: n for n, found in enumerate(classes)}
        here = (np.array([number[found] for found in t.classes], np.int32)[t.cls] for t in filled)
        kind = _joined(list(here), np.int32)
        # Lists come by id, and the sort is stable: inside a class the order is that of the ids.
        order = np.argsort(kind, kind="stable")
        return cls(
            names,
            classes,
            filled,
            _joined(numbers, np.int32)[order],
            _joined(rows, np.int32)[order],
            _joined([t.state for t in filled], np.uint8)[order],
            kind[order],
            _joined([t.cluster for t in filled], np.int32)[order],
            _joined([t.bucket for t in filled], np.uint8)[order],
            _joined([t.priority for t in filled], np.int32)[order],
            np.array([found.price for found in classes], np.float64),
        )

    def __len__(self) -> int:
        return len(self.state)

    def by_state(self) -> dict[str, int]:
        """How many machines are in each state."""
        counts = np.bincount(self.state, minlength=len(STATES))
        return {STATES[n]: int(counts[n]) for n in range(1, len(STATES))}

    def by_capacity(self) -> dict[str, int]:
        """How many machines there are by way of paying, slots that do not exist left out."""
        kinds = np.array([found.capacity_type for found in self.classes], np.int64)
        real = self.cls[self.state > 1]
        counts = np.bincount(kinds[real], minlength=len(CAPACITY)) if len(real) else [0] * 9
        return {CAPACITY[n]: int(counts[n]) for n in range(1, len(CAPACITY))}

    def machine(self, index: int) -> dict[str, object]:
        """One machine as the API shows it."""
        table = self.tables[int(self.table[index])]
        row = int(self.row[index])
        found = self.classes[int(self.cls[index])]
        cluster = int(self.cluster[index])
        ends = table.ending.get(row)
        return {
            "index": int(index),
            "id": table.ids[row],
            "state": STATES[int(self.state[index])],
            "cluster": self.names.clusters[cluster] if cluster >= 0 else None,
            "instance_type": found.instance_type,
            "zone": found.zone,
            "capacity_type": CAPACITY[found.capacity_type],
            "price_per_hour": found.price,
            "interruption_probability": found.probability,
            "shard": found.shard,
            "priority": int(self.priority[index]) if cluster >= 0 else None,
            "ends_at_unix_nanos": ends,
            "last_error": table.errors.get(row) or None,
        }

    def find(self, machine_id: str) -> int:
        """The index of a machine; -1 for none."""
        for number, table in enumerate(self.tables):
            if machine_id in table.ids:
                row = table.ids.index(machine_id)
                here = (self.table == number) & (self.row == row)
                return int(np.flatnonzero(here)[0])
        return -1

    @property
    def _is_short(self) -> bool:
        return len(self.classes) <= _MOST_SHORT

    def document(self) -> dict[str, object]:
        """The map for a page: columns as base64, and what their numbers mean."""
        whole = len(self) <= MOST_CELLS
        state, kind, cluster = self.state, self.cls, self.cluster
        counts: I64 | None = None
        if not whole:
            cells = np.stack([kind, state.astype(np.int32), cluster], axis=1)
            cells, counts = np.unique(cells, axis=0, return_counts=True)
            kind, state, cluster = cells[:, 0], cells[:, 1].astype(np.uint8), cells[:, 2]
        return {
            "machines": len(self),
            "cell": "machine" if whole else "class",
            "cells": len(state),
            "state": _packed(state, np.uint8),
            "class": _packed(kind, np.uint16 if self._is_short else np.uint32),
            "class_bits": 16 if self._is_short else 32,
            "cluster": _packed(cluster + 1, np.uint16),
            "count": None if counts is None else _packed(counts, np.uint32),
            "states": list(STATES),
            "clusters": ["", *self.names.clusters],
            "classes": [
                [CAPACITY[c.capacity_type], c.zone, c.instance_type, c.price, c.shard]
                for c in self.classes
            ],
        }


def _joined(parts: Sequence[npt.NDArray[N]], kind: type[N]) -> npt.NDArray[N]:
    return np.concatenate(parts).astype(kind) if parts else np.zeros(0, kind)


def _packed(column: npt.NDArray[np.generic], kind: type) -> str:
    return base64.b64encode(column.astype(kind).tobytes()).decode("ascii")
