"""Machines in use, by shard and instance type, as far as reports tell.

Reports do not say what machines serve; a donor that is asked knows, and may have none to give. What
can be told is where fitting types are in use at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bigfleet.coordinator.rebalance.planning.catalogue import MachineKind
from bigfleet.coordinator.rebalance.planning.supply import SpareSupply


@dataclass(frozen=True, slots=True)
class TypeUsage:
    """Machines of a type that a shard uses."""

    shard: int
    instance_type: str
    """Empty for types of which nothing is known but that they are there."""
    kind: MachineKind | None
    count: int


class UsageTable:
    """Counted when first asked for, which is seldom."""

    def __init__(self, supply: SpareSupply) -> None:
        self._supply = supply
        self._in_use: list[dict[str, int]] | None = None
        self._known: frozenset[str] = frozenset()
        """Types whose size is known."""
        self._fitting: dict[int, list[TypeUsage]] = {}

    def fitting(self, shape: int) -> Sequence[TypeUsage]:
        """Where fitting machines are in use, most first; types of unknown size at the end."""
        found = self._fitting.get(shape)
        if found is None:
            found = self._fitting[shape] = self._find(shape)
        return found

    def _find(self, shape: int) -> list[TypeUsage]:
        catalogue = self._supply.catalogue
        fits: dict[str, MachineKind] = {}
        for number in np.flatnonzero(catalogue.fits(shape)).tolist():
            fits.setdefault(catalogue.kinds[number].instance_type, catalogue.kinds[number])
        found: list[TypeUsage] = []
        for shard, in_use in enumerate(self._counted()):
            found += [
                TypeUsage(shard, name, fits[name], in_use[name])
                for name in fits.keys() & in_use.keys()
            ]
            if in_use.keys() - self._known:
                found.append(TypeUsage(shard, "", None, 1))
        return sorted(
            found, key=lambda one: (one.kind is None, -one.count, one.shard, one.instance_type)
        )

    def _counted(self) -> list[dict[str, int]]:
        if self._in_use is None:
            kinds = self._supply.catalogue.kinds
            self._in_use = []
            for view in self._supply.views:
                types = dict(view.types)
                free = (view.idle + view.speculative).tolist()
                for kind, count in zip(view.kinds.tolist(), free, strict=True):
                    name = kinds[kind].instance_type
                    types[name] = types.get(name, 0) - count
                self._in_use.append({name: count for name, count in types.items() if count > 0})
            self._known = frozenset(kind.instance_type for kind in kinds)
        return self._in_use
