"""Requirements and taints against classes, once per set and class, kept while both stand.

What a row asks of a class depends on its profile and on what its cluster states: whether its rows
tell what they tolerate, and its defaults of architecture and operating system. A requirement on a
topology column (a label with many values) cannot be told from the class; it becomes a mask over the
column's values. What is kept here is derived from its arguments alone, so keeping it never changes
a decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from bigfleet.model import LABEL_HOSTNAME, Profile, Requirement, RequirementOperator, SpreadMode
from bigfleet.model.columns import ClassTable, MachineColumns
from bigfleet.model.match_set import ClusterTerms, MatchSet

U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
DomainKey = tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    """What a profile asks of a machine, apart from priority, penalties and tolerations."""

    by_class: tuple[Requirement, ...]
    by_column: tuple[Requirement, ...]
    domain: DomainKey
    spread: tuple[tuple[str, int], ...]


@dataclass
class _Kept:
    matches: U8
    labels: tuple[Mapping[str, str], ...]


@dataclass
class Matcher:
    """Keeps which classes hold which requirements, and what profiles come down to."""

    _kept: dict[MatchSet, _Kept] = field(default_factory=dict)
    _owner: object = None
    _columns: frozenset[str] = frozenset()
    known: list[Profile] = field(default_factory=list)
    """The profiles of the fleet's symbols."""
    shapes: list[Shape] = field(default_factory=list)
    """Per profile."""
    sets: dict[MatchSet, int] = field(default_factory=dict)
    keys: dict[DomainKey, int] = field(default_factory=dict)
    masks: dict[Requirement, int] = field(default_factory=dict)
    _table: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 4), np.int32))
    _under: dict[tuple[ClusterTerms, int], tuple[int, int]] = field(default_factory=dict)
    """Per terms and profile: its match sets for new machines and for those it has."""
    _stack: tuple[tuple[int, ...], object, U8] | None = None

    def profiles(self, fleet: MachineColumns) -> npt.NDArray[np.int32]:
        """[profile, 4]: match set without terms, domain key or -1, masks, spread constraints."""
        columns = frozenset(fleet.topology)
        if self._owner is not fleet.symbols or self._columns != columns:
            self._forget(fleet.symbols, columns)
        known = self.known = fleet.symbols.profiles
        if len(self.shapes) < len(known):
            fresh = [_split(profile, columns) for profile in known[len(self.shapes) :]]
            self.shapes.extend(fresh)
            rows = np.array([self._numbers(shape) for shape in fresh], np.int32)
            self._table = np.concatenate([self._table, rows])
        return self._table

    def _numbers(self, shape: Shape) -> tuple[int, int, int, int]:
        match = self._number(MatchSet(shape.by_class))
        domain = self.keys.setdefault(shape.domain, len(self.keys)) if shape.domain else -1
        for requirement in shape.by_column:
            self.masks.setdefault(requirement, len(self.masks))
        for key, _ in shape.spread:
            self.keys.setdefault((key,), len(self.keys))
        return match, domain, len(shape.by_column), len(shape.spread)

    def _number(self, match_set: MatchSet) -> int:
        return self.sets.setdefault(match_set, len(self.sets))

    def under(self, terms: ClusterTerms, profile: int) -> tuple[int, int]:
        """The match sets of a profile under a cluster's terms: of new machines, and of its own."""
        found = self._under.get((terms, profile))
        if found is None:
            new = MatchSet.of_new(self.shapes[profile].by_class, self.known[profile], terms)
            own = replace(new, defaults=())
            found = self._under[terms, profile] = self._number(new), self._number(own)
        return found

    def _forget(self, owner: object, columns: frozenset[str]) -> None:
        """Another fleet, or a label became a column: numbers start over."""
        self._owner, self._columns, self._stack = owner, columns, None
        self.shapes, self.sets, self.keys, self.masks = [], {}, {}, {}
        self._under, self.known = {}, []
        self._table = np.zeros((0, 4), np.int32)

    def stacked(self, sets: npt.NDArray[np.int32], table: ClassTable) -> U8:
        """[set, class] for these match sets; kept while sets and classes stay."""
        wanted = tuple(sets.tolist())
        if self._stack is not None:
            same, labels, stack = self._stack
            if labels is table.labels and same == wanted:
                return stack
        match_sets = list(self.sets)
        stack = np.zeros((max(1, len(wanted)), len(table)), np.uint8)
        for row, number in enumerate(wanted):
            stack[row] = self.classes(match_sets[number], table)
        self._stack = (wanted, table.labels, stack)
        return stack

    def classes(self, match_set: MatchSet, table: ClassTable) -> U8:
        """MATCH or AVOIDED for every class that matches; only changed classes are looked at."""
        kept = self._kept.get(match_set)
        if kept is not None and kept.labels is table.labels:
            return kept.matches
        matches = np.zeros(len(table), np.uint8)
        known = () if kept is None else kept.labels
        for c, labels in enumerate(table.labels):
            if kept is not None and c < len(known) and known[c] is labels:
                matches[c] = kept.matches[c]
            else:
                matches[c] = match_set.match(labels, table.taints[c])
        self._kept[match_set] = _Kept(matches, table.labels)
        return matches

    def forget_unused(self, limit: int = 20_000) -> None:
        """Bound what is kept: past the limit everything is derived again."""
        if len(self._kept) > limit:
            self._kept.clear()
        if len(self.sets) > limit:
            self._owner = None


def is_one_host(requirement: Requirement) -> bool:
    """Whether it asks for one host, whichever."""
    same = requirement.operator is RequirementOperator.SAME and not requirement.values
    return same and requirement.key == LABEL_HOSTNAME


def column_mask(requirement: Requirement, fleet: MachineColumns) -> U8:
    """Which values of a topology column hold a requirement; slot 0 is 'label absent'."""
    names = fleet.topology_names[requirement.key]
    mask = np.zeros(len(names) + 1, np.uint8)
    mask[0] = requirement.matches_value(None)
    if requirement.operator.value in ("Same", "Exists") and not requirement.values:
        mask[1:] = 1
        return mask
    for number, text in enumerate(names):
        mask[number + 1] = requirement.matches_value(text)
    return mask


def _split(profile: Profile, columns: frozenset[str]) -> Shape:
    # Every machine is a host of its own, so hosts never differ by more than one.
    spread = tuple(
        (s.key, max(1, s.max_skew))
        for s in profile.spread
        if s.when is SpreadMode.DO_NOT_SCHEDULE and s.key != LABEL_HOSTNAME and not profile.same
    )
    return Shape(
        by_class=tuple(r for r in profile.requirements if r.key not in columns),
        by_column=tuple(r for r in profile.requirements if r.key in columns),
        domain=tuple(r.key for r in profile.same),
        spread=spread,
    )
