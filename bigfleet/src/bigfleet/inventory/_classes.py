"""Interns what machines have in common into class slots.

Slots are counted by the machines in them. A slot without machines keeps its meaning until another
class needs room, because a class that just lost its last machine often comes back; when a slot
does change its meaning its epoch grows. The table the engine reads is made again only when a slot
changed or a resource name was added.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bigfleet.inventory._column import readonly
from bigfleet.model.amounts.resources import Resources
from bigfleet.model.columns import ClassTable, Names, Offering, Pool
from bigfleet.model.demand.taints import Taint
from bigfleet.model.machine import (
    LABEL_CAPACITY_TYPE,
    LABEL_INSTANCE_TYPE,
    LABEL_ZONE,
    CapacityType,
)

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

_MILLI = 1000
_MICRO = 1_000_000
_MOST_UNITS = 2**62
"""More whole units than this are read as this many, so that every amount fits 64 bits."""


class Attributes(NamedTuple):
    """What the machines of a class have in common; labels without topology keys."""

    provider: str
    region: str
    instance_type: str
    zone: str
    capacity_type: CapacityType
    labels: Mapping[str, str]
    resources: Resources
    allocatable: Resources | None
    price: float
    probability: float
    taints: tuple[Taint, ...] = ()

    def key(self) -> tuple[object, ...]:
        """The same for equal attributes, whatever the order inside the mappings."""
        given = self.allocatable
        return (
            *self[:5],
            frozenset(self.labels.items()),
            frozenset(self.resources.items()),
            None if given is None else frozenset(given.items()),
            self.price,
            self.probability,
            self.taints,
        )

    def matchable(self) -> dict[str, str]:
        """Labels as requirements see them: the three fields overrule what the provider wrote."""
        fields = {
            LABEL_INSTANCE_TYPE: self.instance_type,
            LABEL_ZONE: self.zone,
            LABEL_CAPACITY_TYPE: self.capacity_type.label,
        }
        return {**self.labels, **{key: value for key, value in fields.items() if value}}

    def without(self, label: str) -> Attributes:
        """The same without one label."""
        return self._replace(labels={k: v for k, v in self.labels.items() if k != label})


class _Numbered(dict[tuple[object, ...], int]):
    """Tuples to dense numbers, in the order of first sight."""

    def __missing__(self, key: tuple[object, ...]) -> int:
        number = self[key] = len(self)
        return number


class ClassSlots:
    """The class slots of one inventory."""

    def __init__(self, resources: Names, epoch: int = 0, version: int = 0) -> None:
        self._resources = resources
        self._epoch = epoch
        self._version = version
        self._slots: list[Attributes] = []
        self._labels: list[Mapping[str, str]] = []
        self._taints: list[tuple[Taint, ...]] = []
        self._lookup: dict[tuple[object, ...], int] = {}
        self._spare: dict[int, None] = {}
        self._machines: I64 = np.zeros(0, np.int64)
        self._offerings = _Numbered()
        self._pools = _Numbered()
        self._columns: dict[str, npt.NDArray[np.generic]] = {
            "price": np.zeros(0, np.int64),
            "probability": np.zeros(0, np.float64),
            "capacity_type": np.zeros(0, np.int8),
            "offering": np.zeros(0, np.int32),
            "pool": np.zeros(0, np.int32),
            "epoch": np.zeros(0, np.int64),
            "whole": np.zeros((0, 0), np.int64),
            "milli": np.zeros((0, 0), np.int32),
        }
        self._values: dict[str, dict[str, int]] = {}
        self._table: ClassTable | None = None

    def __len__(self) -> int:
        return len(self._slots)

    def __getitem__(self, slot: int) -> Attributes:
        return self._slots[slot]

    @property
    def epoch(self) -> int:
        """The highest epoch given so far."""
        return self._epoch

    @property
    def version(self) -> int:
        """Grows with every change of the table."""
        return self._version

    @property
    def nbytes(self) -> int:
        return self._machines.nbytes + sum(column.nbytes for column in self._columns.values())

    def values_of(self, label: str) -> Mapping[str, int]:
        """Values this label has in any slot, and in how many."""
        return self._values.get(label, {})

    def intern(self, attributes: Attributes) -> int:
        """The slot of these attributes, to be acquired by the caller."""
        key = attributes.key()
        slot = self._lookup.get(key)
        if slot is not None:
            self._spare.pop(slot, None)
            return slot
        if self._spare:
            slot = next(iter(self._spare))
            del self._spare[slot]
            self._forget(slot)
        else:
            slot = len(self._slots)
            self._slots.append(attributes)
            self._labels.append({})
            self._taints.append(())
            self._widen()
        self._lookup[key] = slot
        self._define(slot, attributes)
        return slot

    def acquire(self, slots: npt.NDArray[np.integer]) -> None:
        """Count one machine more for each of these slots."""
        self._machines += np.bincount(slots, minlength=len(self._machines))

    def release(self, slots: npt.NDArray[np.integer]) -> None:
        """Count one machine less for each of these slots."""
        fewer = np.bincount(slots, minlength=len(self._machines))
        self._machines -= fewer
        emptied = np.flatnonzero((fewer > 0) & (self._machines == 0))
        self._spare.update(dict.fromkeys(emptied.tolist()))

    def split_off(self, label: str) -> tuple[I32, list[str | None]]:
        """Take a label out of all classes, so that some become one.

        Returns, per slot as it was, the slot it is now and the value its label had.
        """
        values = [attributes.labels.get(label) for attributes in self._slots]
        slots = np.arange(len(self._slots), dtype=np.int32)
        for slot, value in enumerate(values):
            if value is None:
                continue
            self._forget(slot)
            plain = self._slots[slot].without(label)
            known = self._lookup.setdefault(plain.key(), slot)
            if known == slot:
                self._define(slot, plain)
                continue
            slots[slot] = known
            self._machines[known] += self._machines[slot]
            self._machines[slot] = 0
            if self._machines[known]:
                self._spare.pop(known, None)
            # A slot that means nothing any more: an empty one that no key leads to.
            self._define(slot, plain)
            self._spare[slot] = None
        return slots, values

    def table(self) -> ClassTable:
        """The classes as columns; the same value until something changes."""
        width = len(self._resources)
        if self._table is None or self._table.whole.shape[1] != width:
            self._widen()
            rows = len(self._slots)
            copies = {name: readonly(c[:rows].copy()) for name, c in self._columns.items()}
            self._version += 1
            self._table = ClassTable(
                **copies,  # type: ignore[arg-type]
                labels=tuple(self._labels),
                taints=tuple(self._taints),
                offerings=_offerings(self._offerings),
                pools=_pools(self._pools),
                version=self._version,
            )
        return self._table

    def _define(self, slot: int, attributes: Attributes) -> None:
        self._epoch += 1
        self._slots[slot] = attributes
        self._labels[slot] = attributes.matchable()
        self._taints[slot] = attributes.taints
        for label, value in attributes.labels.items():
            counts = self._values.setdefault(label, {})
            counts[value] = counts.get(value, 0) + 1
        a, columns = attributes, self._columns
        columns["price"][slot] = round(a.price * _MICRO)
        columns["probability"][slot] = a.probability
        columns["capacity_type"][slot] = int(a.capacity_type)
        columns["offering"][slot] = self._offerings[
            a.provider, a.instance_type, a.zone, a.capacity_type
        ]
        columns["pool"][slot] = self._pools[a.provider, a.region]
        columns["epoch"][slot] = self._epoch
        self._define_amounts(slot, a.resources if a.allocatable is None else a.allocatable)
        self._table = None

    def _define_amounts(self, slot: int, amounts: Resources) -> None:
        numbers = [self._resources.of(name) for name in amounts]
        self._widen()
        whole, milli = self._columns["whole"], self._columns["milli"]
        whole[slot], milli[slot] = 0, 0
        for number, amount in zip(numbers, amounts.values(), strict=True):
            units, rest = divmod(amount, _MILLI)
            whole[slot, number], milli[slot, number] = min(units, _MOST_UNITS), rest

    def _forget(self, slot: int) -> None:
        attributes = self._slots[slot]
        key = attributes.key()
        if self._lookup.get(key) == slot:
            del self._lookup[key]
        for label, value in attributes.labels.items():
            counts = self._values[label]
            counts[value] -= 1
            if not counts[value]:
                del counts[value]

    def _widen(self) -> None:
        """Room for one more slot, and a column for each resource name."""
        room, width = self._columns["whole"].shape
        names = len(self._resources)
        if len(self._slots) <= room and names == width:
            return
        size = room if len(self._slots) <= room else 2 * room + 64
        for name, column in self._columns.items():
            grown = np.zeros((size, names) if column.ndim == 2 else size, column.dtype)
            grown[tuple(slice(0, length) for length in column.shape)] = column
            self._columns[name] = grown
        machines = np.zeros(size, np.int64)
        machines[:room] = self._machines
        self._machines = machines


def _offerings(numbered: _Numbered) -> tuple[Offering, ...]:
    return tuple(numbered)  # type: ignore[arg-type]


def _pools(numbered: _Numbered) -> tuple[Pool, ...]:
    return tuple(numbered)  # type: ignore[arg-type]
