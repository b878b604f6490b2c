"""Taints of pools, tolerations of rows, and what clusters state of both, for a drawn fleet.

All of it comes from a generator of its own, so that a shape without taints is the fleet it was
before there were any.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from bigfleet.model import (
    LABEL_ARCH,
    Need,
    Taint,
    Toleration,
    canonical_taints,
)
from bigfleet.model.facts import ClusterFacts
from bigfleet_lab.simulate.fleet_shapes import FleetShape

TAINTS: Final = (
    Taint.of("nvidia.com/gpu", "present"),
    Taint.of("team", "a", "NoExecute"),
    Taint.of("team", "b", "NoSchedule"),
    Taint.of("cheap", "", "PreferNoSchedule"),
)
TOLERATIONS: Final = (
    Toleration.of("nvidia.com/gpu", "Exists"),
    Toleration.of("team", "Equal", "a"),
    Toleration.of("team", "Exists", effect="NoSchedule"),
    Toleration.of("cheap", "Equal"),
    Toleration.of(operator="Exists"),
)


@dataclass
class DrawnTaints:
    """What pools, rows and clusters of a shape have; ask in a fixed order for the same answers."""

    shape: FleetShape
    _rng: Random = field(init=False)
    _pools: dict[str, tuple[tuple[Taint, ...], dict[str, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rng = Random(self.shape.seed * 104_729 + 1)

    def of_pool(self, name: str) -> tuple[tuple[Taint, ...], dict[str, str]]:
        """Taints of a pool's machines, and labels beyond those every machine has."""
        found = self._pools.get(name)
        if found is None:
            rng, shape = self._rng, self.shape
            count = rng.randint(1, 2) if rng.random() < shape.tainted else 0
            labels = {LABEL_ARCH: "arm64"} if rng.random() < shape.arm else {}
            found = self._pools[name] = canonical_taints(rng.sample(TAINTS, count)), labels
        return found

    def tolerant(self, need: Need) -> Need:
        """The row with what it tolerates."""
        if self._rng.random() >= self.shape.tolerant:
            return need
        tolerations = self._rng.sample(TOLERATIONS, self._rng.randint(1, 2))
        return replace(need, profile=replace(need.profile, tolerations=tuple(sorted(tolerations))))

    def stated(self, fact: ClusterFacts) -> ClusterFacts:
        """The facts of a cluster with what it states."""
        return replace(
            fact,
            tolerations_stated=self._rng.random() < self.shape.stated,
            default_arch="amd64" if self._rng.random() < self.shape.stated else "",
        )
