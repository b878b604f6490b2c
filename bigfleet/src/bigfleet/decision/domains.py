"""Topology of one cycle: domain keys, masks over topology columns, and who asks for them.

A domain key is the label (or labels) whose value a gang's machines share or a spread counts. Its
domains are numbered; a label of the class numbers its values here, a topology column brings its
own numbers. What is derived is per cycle; what depends on a profile alone is kept in Matcher, and
numbers are given again while the rows stay the same (``DomainNumbers``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from bigfleet.decision.kernels.layout import FAILED, I32, I64, U8
from bigfleet.decision.matcher import DomainKey, Matcher, Shape, column_mask, is_one_host
from bigfleet.decision.tables import Clusters
from bigfleet.model import Requirement
from bigfleet.model.columns import Demand, MachineColumns
from bigfleet.model.match_set import MatchSet


@dataclass(frozen=True)
class DomainNumbers:
    """Which numbers the columns, domain keys and masks of some rows have."""

    columns: tuple[str, ...]
    keys: Mapping[DomainKey, int]
    masks: Mapping[Requirement, int]


@dataclass
class CycleTopology:
    """What the demand of one cycle asks of labels and domains."""

    fleet: MachineColumns
    matcher: Matcher
    clusters: Clusters
    profiles: npt.NDArray[np.int32] = field(init=False)
    """[profile, 4]: match set without terms, domain key or -1, masks, spread constraints."""
    columns: list[str] = field(default_factory=list)
    """Topology columns in use; combined keys get a column of their own."""
    keys: dict[DomainKey, int] = field(default_factory=dict)
    """Domain keys in use this cycle."""
    masks: dict[Requirement, int] = field(default_factory=dict)
    _extra: dict[str, I32] = field(default_factory=dict)
    _names: dict[str, list[str]] = field(default_factory=dict)
    _alive: dict[tuple[Requirement, ...], U8] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.profiles = self.matcher.profiles(self.fleet)

    def shape(self, profile: int) -> Shape:
        """Requirements of a profile, by where they are looked up."""
        return self.matcher.shapes[profile]

    def gangs(self, demand: Demand) -> I64:
        """Demand rows with a Same requirement."""
        return np.flatnonzero(self.profiles[demand.profile, 1] >= 0)

    def without_same(self, demand: Demand) -> I32:
        """Per demand row: its profile without Same."""
        symbols = self.fleet.symbols
        used, inverse = np.unique(demand.profile, return_inverse=True)
        other = [symbols.profile(symbols.profiles[p].without_same()) for p in used]
        self.profiles = self.matcher.profiles(self.fleet)
        return np.array(other, np.int32)[inverse.reshape(-1)]

    def match_sets(self, profile: I32, cluster: I32) -> tuple[I32, I32]:
        """Per row of these profiles and clusters: its match sets for new machines and its own."""
        new = self.profiles[profile, 0]
        own = new.copy()
        terms = self.clusters.terms[cluster]
        for number, stated in enumerate(self.clusters.stated[1:], 1):
            rows = np.flatnonzero(terms == number)
            used, inverse = np.unique(profile[rows], return_inverse=True)
            pairs = [self.matcher.under(stated, p) for p in used.tolist()]
            found = np.array(pairs, np.int32).reshape(-1, 2)[inverse.reshape(-1)]
            new[rows], own[rows] = found[:, 0], found[:, 1]
        return new, own

    def alive(self, profile: int, terms: int) -> U8:
        """Classes with a machine, in any state but Failed, that may hold a whole gang.

        One machine is one host, also where it has no name of a host yet.
        """
        shape = self.shape(profile)
        by_class, by_column = (
            tuple(r for r in part if not is_one_host(r))
            for part in (shape.by_class, shape.by_column)
        )
        known, stated = self.fleet.symbols.profiles[profile], self.clusters.stated[terms]
        match_set = replace(MatchSet.of_new(by_class, known, stated), defaults=())
        matches = self.matcher.classes(match_set, self.fleet.classes)
        return (matches > 0) & self._with_column(by_column)

    def wants_one_host(self, profile: int) -> bool:
        """Whether its gangs can only be on one machine."""
        shape = self.shape(profile)
        return any(is_one_host(r) for r in (*shape.by_class, *shape.by_column))

    def _with_column(self, requirements: tuple[Requirement, ...]) -> U8:
        found = self._alive.get(requirements)
        if found is None:
            fleet = self.fleet
            ok = (fleet.state > 0) & (fleet.state != FAILED)
            for r in requirements:
                ok &= column_mask(r, fleet)[fleet.topology[r.key] + 1] > 0
            counts = np.bincount(fleet.cls[ok], minlength=len(fleet.classes))
            found = self._alive[requirements] = (counts > 0).astype(np.uint8)
        return found

    # -- numbering ---------------------------------------------------------------------------

    def numbering(self) -> DomainNumbers:
        """The numbers given so far."""
        return DomainNumbers(tuple(self.columns), dict(self.keys), dict(self.masks))

    def resume(self, numbering: DomainNumbers) -> None:
        """Give the numbers that the same rows got in an earlier cycle."""
        if self.keys == numbering.keys and self.masks == numbering.masks:
            return
        for key in numbering.keys:
            if len(key) > 1:
                self._combine(key)
        self.columns = list(numbering.columns)
        self.keys, self.masks = dict(numbering.keys), dict(numbering.masks)

    def column(self, key: str) -> int:
        """The number of a topology column."""
        if key not in self.columns:
            self.columns.append(key)
        return self.columns.index(key)

    def mask(self, requirement: Requirement) -> int:
        """The number of a requirement on a topology column."""
        self.column(requirement.key)
        return self.masks.setdefault(requirement, len(self.masks))

    def domain(self, key: DomainKey) -> int:
        """The number of a domain key; -1 for none."""
        if not key:
            return -1
        found = self.keys.get(key)
        if found is None:
            if len(key) > 1:
                self._combine(key)
            elif key[0] in self.fleet.topology:
                self.column(key[0])
            found = self.keys[key] = len(self.keys)
        return found

    def _combine(self, key: DomainKey) -> None:
        """A gang under several labels: one column of their combinations."""
        parts = [self._values(k) for k in key]
        stacked = np.stack([values for values, _ in parts])
        present = (stacked >= 0).all(axis=0)
        distinct, inverse = np.unique(stacked[:, present], axis=1, return_inverse=True)
        column = np.full(len(self.fleet), -1, np.int32)
        column[present] = inverse.reshape(-1)
        name = "\x00".join(key)
        self._extra[name] = column
        self._names[name] = [
            "\x00".join(parts[i][1][int(v)] for i, v in enumerate(combination))
            for combination in distinct.T
        ]
        self.columns.append(name)

    def _values(self, key: str) -> tuple[I32, list[str]]:
        if key in self.fleet.topology:
            return self.fleet.topology[key], list(self.fleet.topology_names[key])
        by_class, names = self._class_values(key)
        return by_class[self.fleet.cls], names

    def _class_values(self, key: str) -> tuple[I32, list[str]]:
        labels = self.fleet.classes.labels
        names = sorted({label[key] for label in labels if key in label})
        number = {name: i for i, name in enumerate(names)}
        return np.array([number.get(label.get(key, ""), -1) if key in label else -1
                         for label in labels], np.int32), names  # fmt: skip

    # -- arrays ------------------------------------------------------------------------------

    def stacked_columns(self) -> I32:
        """[column, machine]; at least one row, so that kernels need no special case."""
        arrays = [
            self._extra[c] if c in self._extra else self.fleet.topology[c] for c in self.columns
        ]
        if not arrays:
            return np.zeros((1, 0), np.int32)
        if len(arrays) == 1:
            return arrays[0][None, :]
        return np.stack(arrays)

    def mask_arrays(self) -> tuple[I32, U8]:
        """Column and allowed values per mask."""
        column = np.array([self.columns.index(r.key) for r in self.masks], np.int32)
        rows = [column_mask(r, self.fleet) for r in self.masks]
        width = max((len(row) for row in rows), default=1)
        values = np.zeros((max(1, len(rows)), width), np.uint8)
        for i, row in enumerate(rows):
            values[i, : len(row)] = row
        return column, values

    def domain_arrays(self) -> tuple[I32, I32, I32, I32, dict[int, list[str]]]:
        """Per domain key: column or -1, domain of each class, rank of names, count; and names."""
        size = max(1, len(self.keys))
        column = np.full(size, -1, np.int32)
        of_class = np.full((size, len(self.fleet.classes)), -1, np.int32)
        names: dict[int, list[str]] = {}
        ranks: list[npt.NDArray[np.int32]] = [np.zeros(0, np.int32)] * size
        for key, number in self.keys.items():
            label = "\x00".join(key)
            if label in self.columns:
                column[number] = self.columns.index(label)
                if label in self._names:
                    names[number] = self._names[label]
                    ranks[number] = np.arange(len(names[number]), dtype=np.int32)
                    order = sorted(range(len(names[number])), key=names[number].__getitem__)
                    ranks[number][order] = np.arange(len(order), dtype=np.int32)
                else:
                    known = self.fleet.topology_names[label]
                    names[number] = list(known)
                    ranks[number] = known.rank()
            else:
                of_class[number], names[number] = self._class_values(label)
                ranks[number] = np.arange(len(names[number]), dtype=np.int32)
        count = np.array([len(r) for r in ranks], np.int32)
        rank = np.zeros((size, max(1, int(count.max()))), np.int32)
        for number, r in enumerate(ranks):
            rank[number, : len(r)] = r
        return column, of_class, rank, count, names
