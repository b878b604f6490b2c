"""The whole fleet as it is known now: shards, what the coordinator says, decisions, history.

Versions count changes, so that a page asks again only for what changed. The map over all machines
is made on the first request, and kept until a shard's machines change.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from bigfleet_dashboard.state.coordinator import CoordinatorView
from bigfleet_dashboard.state.decisions import DecisionLog
from bigfleet_dashboard.state.fleetmap import FleetMap
from bigfleet_dashboard.state.history import History, Point
from bigfleet_dashboard.state.names import Names
from bigfleet_dashboard.state.needs import NeedRow
from bigfleet_dashboard.state.shards import ShardState
from bigfleet_dashboard.state.source_health import SourceBook


@dataclass(slots=True)
class Fleet:
    """Everything. Written by sources and read by the web, on one event loop."""

    clock: Callable[[], float] = time.time
    names: Names = field(default_factory=Names)
    shards: dict[str, ShardState] = field(default_factory=dict)
    coordinator: CoordinatorView = field(default_factory=CoordinatorView)
    decisions: DecisionLog = field(default_factory=DecisionLog)
    history: History = field(default_factory=History)
    sources: SourceBook = field(default_factory=SourceBook)
    rollup_ages: dict[str, float] = field(default_factory=dict)
    """Cluster -> seconds since its last acknowledged roll-up, where Prometheus knows."""
    upcoming: dict[str, dict[str, int]] = field(default_factory=dict)
    """Cluster -> UpcomingNodes by phase, where its API server can be asked."""
    version: int = 0
    machines_version: int = 0
    _map: FleetMap | None = None
    _map_version: int = -1

    def changed(self) -> None:
        """Something is new."""
        self.version += 1

    def machines_changed(self) -> None:
        """Machines are new, too."""
        self.machines_version += 1
        self.changed()

    def shard(self, shard_id: str, address: str) -> ShardState:
        """A shard by id, known from now on."""
        found = self.shards.get(shard_id)
        if found is None:
            found = self.shards[shard_id] = ShardState(shard_id, address)
            self.changed()
        found.address = address or found.address
        return found

    def forget_shard(self, shard_id: str) -> None:
        """A shard that was removed."""
        if self.shards.pop(shard_id, None) is not None:
            self.machines_changed()

    def needs(self) -> Iterator[NeedRow]:
        """All needs of all shards."""
        for shard in self.shards.values():
            yield from shard.needs

    def need(self, key: str) -> NeedRow | None:
        """One need."""
        return next((row for row in self.needs() if row.key == key), None)

    @property
    def map(self) -> FleetMap:
        """All machines."""
        if self._map is None or self._map_version != self.machines_version:
            tables = [shard.machines for _, shard in sorted(self.shards.items())]
            self._map = FleetMap.of(self.names, tables)
            self._map_version = self.machines_version
        return self._map

    def sessions(self) -> set[str]:
        """Clusters that are connected."""
        return {name for shard in self.shards.values() for name in shard.sessions}

    def clusters(self) -> list[str]:
        """Every cluster anybody speaks of."""
        bound = {self.names.clusters[n] for n in np.unique(self.map.cluster).tolist() if n >= 0}
        known = {row.cluster for row in self.needs()} | self.sessions() | bound
        return sorted(known | set(self.coordinator.bindings))

    def sample(self, spend: float) -> None:
        """Remember how it is now."""
        now = self.clock()
        cycles = [ms for s in self.shards.values() if (ms := s.cycle_ms(0.99, now)) is not None]
        self.history.add(
            Point(
                now,
                spend,
                sum(not row.satisfied for row in self.needs()),
                self.map.by_state(),
                sum(self.decisions.per_minute(int(now * 1e9)).values()),
                max(cycles, default=0.0),
            )
        )
