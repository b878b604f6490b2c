"""Texts and classes as small numbers, shared by the tables of all shards.

Numbers are given once and never taken back: a fleet has few clusters and few classes of machines,
however many machines it has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class MachineClass(NamedTuple):
    """What machines of one kind have in common."""

    capacity_type: int
    zone: str
    instance_type: str
    price: float
    probability: float
    shard: str


@dataclass(slots=True)
class Names:
    """Numbers of clusters and classes."""

    clusters: list[str] = field(default_factory=list)
    classes: list[MachineClass] = field(default_factory=list)
    _cluster: dict[str, int] = field(default_factory=dict)
    _class: dict[MachineClass, int] = field(default_factory=dict)

    def cluster(self, name: str) -> int:
        """A cluster's number; -1 for none."""
        if not name:
            return -1
        number = self._cluster.get(name)
        if number is None:
            number = self._cluster[name] = len(self.clusters)
            self.clusters.append(name)
        return number

    def find_cluster(self, name: str) -> int:
        """The number of a cluster that is known; -2, which no machine has, for any other."""
        return self._cluster.get(name, -2)

    def machine_class(self, found: MachineClass) -> int:
        """A class's number."""
        number = self._class.get(found)
        if number is None:
            number = self._class[found] = len(self.classes)
            self.classes.append(found)
        return number
