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
from dataclasses import dataclass
from typing import Final

from bigfleet.model.demand.profile import Profile
from bigfleet.model.demand.requirements import Requirement, RequirementOperator
from bigfleet.model.demand.taints import Taint, Toleration, untolerated
from bigfleet.model.facts import ClusterFacts
from bigfleet.model.machine import LABEL_ARCH, LABEL_INSTANCE_TYPE, LABEL_OS

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
