"""Clusters as small numbers, shared by the tables of all shards; and classes of machines.

A cluster's number is given once and never taken back: it keeps its colour, and a fleet has few of
them. Classes are many over time, since a price that changes makes a new one, and so belong to the
table they were read with.
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
    """Numbers of clusters."""

    clusters: list[str] = field(default_factory=list)
    _cluster: dict[str, int] = field(default_factory=dict)

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
