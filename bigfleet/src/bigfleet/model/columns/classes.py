"""Classes: machines with the same attributes share one, so that requirements are matched against
a few hundred classes instead of half a million machines.

A class holds everything of a machine that is not its own: offering, labels (topology labels with
many values apart), taints, what it offers, price and interruption probability. Slots of classes
that lost their last machine are used again; ``epoch`` says when a slot last changed its meaning.
What classes answer to requirements, tolerations and defaults is kept as columns beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import is_
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bigfleet.model.demand.requirements import Requirement
from bigfleet.model.demand.taints import Taint, Toleration
from bigfleet.model.machine import CapacityType
from bigfleet.model.match_set import MatchSet, has_defaults

E = TypeVar("E")
U8 = npt.NDArray[np.uint8]
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


@dataclass
class ClassAnswers:
    """What classes answer to one requirement, one list of tolerations, one default: as columns.

    Made of the labels and taints of each class. Many classes share a value or a list of taints, and
    each is asked once.
    """

    labels: tuple[Mapping[str, str], ...]
    taints: tuple[tuple[Taint, ...], ...]
    answers: dict[Requirement | tuple[Toleration, ...] | tuple[str, str] | None, U8] = field(
        default_factory=dict
    )
    _values: dict[str, tuple[list[str | None], I32]] = field(default_factory=dict)
    """Per label: its distinct values, and which one each class has."""
    _lists: tuple[list[tuple[Taint, ...]], I32] | None = None

    def answer_for(self, labels: tuple[Mapping[str, str], ...]) -> bool:
        """Whether these are the same slots: one that means something else has another mapping."""
        mine = self.labels
        return mine is labels or (len(mine) == len(labels) and all(map(is_, mine, labels)))

    def match(self, match_set: MatchSet, out: U8) -> None:
        """Write MATCH or AVOIDED for every class that matches."""
        out[:] = self._under(match_set.tolerations)
        for requirement in match_set.requirements:
            out *= self._holding(requirement)
        for default in match_set.defaults:
            out *= self._having(default)

    def _holding(self, requirement: Requirement) -> U8:
        found = self.answers.get(requirement)
        if found is None:
            values, number = self._of_label(requirement.key)
            held = np.array([requirement.matches_value(value) for value in values], np.uint8)
            found = self.answers[requirement] = held[number]
        return found

    def _having(self, default: tuple[str, str]) -> U8:
        found = self.answers.get(default)
        if found is None:
            values, number = self._of_label(default[0])
            labels = [{} if value is None else {default[0]: value} for value in values]
            had = np.array([has_defaults(label, (default,)) for label in labels], np.uint8)
            found = self.answers[default] = had[number]
        return found

    def _under(self, tolerations: tuple[Toleration, ...] | None) -> U8:
        found = self.answers.get(tolerations)
        if found is None:
            if self._lists is None:
                self._lists = _numbered(self.taints)
            lists, number = self._lists
            left = MatchSet(tolerations=tolerations)
            verdicts = np.array([left.match({}, taints) for taints in lists], np.uint8)
            found = self.answers[tolerations] = verdicts[number]
        return found

    def _of_label(self, key: str) -> tuple[list[str | None], I32]:
        found = self._values.get(key)
        if found is None:
            of_class = [labels.get(key) for labels in self.labels]
            found = self._values[key] = _numbered(of_class)
        return found


def _numbered(entries: Iterable[E]) -> tuple[list[E], I32]:
    """The distinct entries, and the number of each one."""
    known: dict[E, int] = {}
    numbers = [known.setdefault(entry, len(known)) for entry in entries]
    return list(known), np.array(numbers, np.int32)
