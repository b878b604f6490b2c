"""What the needs of one profile ask of a machine, under what their cluster states.

A match set is compared with the labels and taints of machines, or of a class of machines. Two needs
with the same match set are served by the same machines, whatever their clusters are called.

A Pod without a node selector for `kubernetes.io/arch` is meant to run on what its cluster usually
has: most images are built for one architecture. So a cluster states its defaults, and a machine
that is newly placed for a row has them, unless the row names that label or an instance type. A
default is not a requirement: what already serves a row stays, and no fingerprint knows of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from operator import is_
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from bigfleet.model.demand.profile import Profile
from bigfleet.model.demand.requirements import Requirement, RequirementOperator
from bigfleet.model.demand.taints import Taint, Toleration, untolerated
from bigfleet.model.facts import ClusterFacts
from bigfleet.model.machine import LABEL_ARCH, LABEL_INSTANCE_TYPE, LABEL_OS

E = TypeVar("E")
U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
ASSUMED: Final = {LABEL_ARCH: "amd64", LABEL_OS: "linux"}
"""What a machine without the label counts as."""
Defaults = tuple[tuple[str, str], ...]
"""Label keys and the values that a newly placed machine must have."""
NO_MATCH: Final = 0
MATCH: Final = 1
AVOIDED: Final = 2
"""It matches, but a taint PreferNoSchedule is not tolerated."""


@dataclass(frozen=True)
class ClusterTerms:
    """What a cluster states about all its rows."""

    tolerations_stated: bool = False
    default_arch: str = ""
    default_os: str = ""

    @classmethod
    def of(cls, fact: ClusterFacts) -> ClusterTerms:
        """The terms of a cluster."""
        return cls(fact.tolerations_stated, fact.default_arch, fact.default_os)


@dataclass(frozen=True)
class MatchSet:
    """Requirements, tolerations and defaults; without tolerations (None) taints do not count."""

    requirements: tuple[Requirement, ...] = ()
    tolerations: tuple[Toleration, ...] | None = None
    defaults: Defaults = ()

    @classmethod
    def of_new(
        cls, requirements: Iterable[Requirement], profile: Profile, terms: ClusterTerms
    ) -> MatchSet:
        """What a profile asks of new machines, as far as these of its requirements say."""
        return cls(
            tuple(requirements),
            profile.tolerations if terms.tolerations_stated else None,
            defaults_of(profile.requirements, terms.default_arch, terms.default_os),
        )

    def match(self, labels: Mapping[str, str], taints: tuple[Taint, ...]) -> int:
        """Whether a machine with these labels and taints matches, or is avoided."""
        if not all(requirement.matches(labels) for requirement in self.requirements):
            return NO_MATCH
        if self.defaults and not has_defaults(labels, self.defaults):
            return NO_MATCH
        left = untolerated(taints, self.tolerations or ()) if taints else []
        if self.tolerations is None or not left:
            return MATCH
        return NO_MATCH if any(taint.binds for taint in left) else AVOIDED


def defaults_of(requirements: Collection[Requirement], arch: str, os: str) -> Defaults:
    """The defaults that hold for a row with these requirements; an empty one allows any value."""
    named = {requirement.key for requirement in requirements}
    types = [r for r in requirements if r.key == LABEL_INSTANCE_TYPE]
    if any(r.operator is RequirementOperator.IN for r in types):
        return ()
    stated = ((LABEL_ARCH, arch), (LABEL_OS, os))
    return tuple((key, value) for key, value in stated if value and key not in named)


def has_defaults(labels: Mapping[str, str], defaults: Defaults) -> bool:
    """Whether a machine with these labels has what the defaults name."""
    return all(labels.get(key, ASSUMED[key]) == value for key, value in defaults)


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
