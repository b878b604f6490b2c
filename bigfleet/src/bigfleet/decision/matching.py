"""Requirements against classes, once per set of requirements and class, kept while both stand.

A requirement on a topology column (a label with many values) cannot be told from the class; it
becomes a mask over the column's values. What is kept here is derived from its arguments alone, so
keeping it never changes a decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bigfleet.model import Profile, Requirement, SpreadMode
from bigfleet.model.columns import ClassTable, MachineColumns

U8 = npt.NDArray[np.uint8]
DomainKey = tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    """What a profile asks of a machine, apart from priority and penalties."""

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
    """Keeps which classes hold which requirements."""

    _shapes: dict[tuple[str, frozenset[str]], Shape] = field(default_factory=dict)
    _kept: dict[tuple[Requirement, ...], _Kept] = field(default_factory=dict)

    def shape(self, profile: Profile, columns: frozenset[str]) -> Shape:
        """A profile's requirements, split by where they are looked up."""
        key = (profile.shape_fingerprint, columns)
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = _split(profile, columns)
        return found

    def classes(self, requirements: tuple[Requirement, ...], table: ClassTable) -> U8:
        """1 for every class that holds all requirements; only changed classes are looked at."""
        kept = self._kept.get(requirements)
        if kept is not None and kept.labels is table.labels:
            return kept.matches
        matches = np.zeros(len(table), np.uint8)
        known = () if kept is None else kept.labels
        for c, labels in enumerate(table.labels):
            if kept is not None and c < len(known) and known[c] is labels:
                matches[c] = kept.matches[c]
            else:
                matches[c] = all(r.matches(labels) for r in requirements)
        self._kept[requirements] = _Kept(matches, table.labels)
        return matches

    def forget_unused(self, limit: int = 20_000) -> None:
        """Bound what is kept: past the limit everything is derived anew."""
        if len(self._kept) > limit:
            self._kept.clear()
        if len(self._shapes) > limit:
            self._shapes.clear()


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
    spread = tuple(
        (s.key, max(1, s.max_skew))
        for s in profile.spread
        if s.when is SpreadMode.DO_NOT_SCHEDULE and not profile.same
    )
    return Shape(
        by_class=tuple(r for r in profile.requirements if r.key not in columns),
        by_column=tuple(r for r in profile.requirements if r.key in columns),
        domain=tuple(r.key for r in profile.same),
        spread=spread,
    )
