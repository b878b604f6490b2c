"""Requirements and taints against classes, once per distinct value, kept while the classes stand.

What a row asks of a class depends on its profile and on what its cluster states: whether its rows
tell what they tolerate, and its defaults of architecture and operating system. A requirement on a
topology column (a label with many values) cannot be told from the class; it becomes a mask over the
column's values. What is kept here is derived from its arguments alone, so keeping it never changes
a decision.

A fleet has thousands of match sets and thousands of classes, and far fewer values of each label. So
a requirement is compared with the values of its label, and lists of tolerations with the distinct
lists of taints; a match set is the product of such columns over classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from bigfleet.model import LABEL_HOSTNAME, Profile, Requirement, RequirementOperator, SpreadMode
from bigfleet.model.columns import ClassTable, MachineColumns
from bigfleet.model.columns.classes import ClassAnswers
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
class Matcher:
    """Keeps which classes hold which requirements, and what profiles come down to."""

    _kept: ClassAnswers | None = None
    _owner: object = None
    _columns: frozenset[str] = frozenset()
    known: list[Profile] = field(default_factory=list)
    """The profiles of the fleet's symbols."""
    shapes: list[Shape] = field(default_factory=list)
    """Per profile."""
    sets: dict[MatchSet, int] = field(default_factory=dict)
    keys: dict[DomainKey, int] = field(default_factory=dict)
    masks: dict[Requirement, int] = field(default_factory=dict)
    _table: I32 = field(default_factory=lambda: np.zeros((0, 4), np.int32))
    _under: dict[tuple[ClusterTerms, int], tuple[int, int]] = field(default_factory=dict)
    """Per terms and profile: its match sets for new machines and for those it has."""
    _stack: tuple[I32, object, U8] | None = None

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

    def stacked(self, sets: I32, table: ClassTable) -> U8:
        """[set, class] for these match sets; of those asked for last nothing is made again."""
        columns = self._columns_of(table)
        stack = np.zeros((max(1, len(sets)), len(table)), np.uint8)
        missing = np.ones(len(sets), np.bool_)
        if self._stack is not None and self._stack[1] is columns:
            known, _, before = self._stack
            if np.array_equal(known, sets):
                return before
            place = np.full(len(self.sets), -1, np.int64)
            place[known] = np.arange(len(known))
            missing = place[sets] < 0
            stack[np.flatnonzero(~missing)] = before[place[sets[~missing]]]
        if missing.any():
            match_sets = list(self.sets)
            for row in np.flatnonzero(missing).tolist():
                columns.match(match_sets[sets[row]], stack[row])
        self._stack = (sets, columns, stack)
        return stack

    def classes(self, match_set: MatchSet, table: ClassTable) -> U8:
        """MATCH or AVOIDED for every class that matches."""
        found = np.zeros(len(table), np.uint8)
        self._columns_of(table).match(match_set, found)
        return found

    def _columns_of(self, table: ClassTable) -> ClassAnswers:
        kept = self._kept
        if kept is None or not kept.answer_for(table.labels):
            kept = self._kept = ClassAnswers(table.labels, table.taints)
        return kept

    def forget_unused(self, limit: int = 20_000) -> None:
        """Bound what is kept: past the limit everything is derived again."""
        if self._kept is not None and len(self._kept.answers) > limit:
            self._kept = None
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
    looked_at: Iterable[str] = requirement.values
    if requirement.operator in (RequirementOperator.GT, RequirementOperator.LT):
        looked_at = names
    else:
        # All values that are not listed are answered alike.
        other = next((text for text in names if text not in requirement.values), None)
        mask[1:] = other is not None and requirement.matches_value(other)
    for text in looked_at:
        number = names.find(text)
        if number >= 0:
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
