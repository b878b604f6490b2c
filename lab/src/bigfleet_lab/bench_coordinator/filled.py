"""A coordinator's embedded store, filled before a coordinator starts: writing a hundred thousand
domains one by one is not what is measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bigfleet.coordinator.state import FleetState, ProviderEntry
from bigfleet.coordinator.state.changes import REVISION
from bigfleet.coordinator.state.rows import all_rows
from bigfleet.coordinator.state.values import ClusterBinding, ShardEntry
from bigfleet.coordinator.store.factory import open_store
from bigfleet.coordinator.store.interface import RestoreScope, StorePlace
from bigfleet.observe.process import SystemClock, Threads

RACK: Final = "bench.bigfleet/rack"
ZONE: Final = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class Size:
    """How much a coordinator knows."""

    shards: int
    clusters: int
    domains: int

    def shard_ids(self) -> list[str]:
        """All shards."""
        return [f"s-{number:03d}" for number in range(self.shards)]

    def clusters_of(self, shard: int) -> list[str]:
        """The clusters of the shard with this number."""
        return [f"c-{number:05d}" for number in range(shard, self.clusters, self.shards)]

    def racks_of(self, shard: int) -> list[str]:
        """The domains of the shard with this number."""
        return [rack_name(number) for number in range(shard, self.domains, self.shards)]


def rack_name(number: int) -> str:
    """A domain's value."""
    return f"room-{number // 500:03d}-rack-{number:06d}"


def crowd_state(size: Size) -> FleetState:
    """Shards that own racks and serve clusters."""
    state = FleetState()
    for number, shard_id in enumerate(size.shard_ids()):
        state.put("shards", shard_id, ShardEntry(f"{shard_id}:7780", 1, 1 + number))
        for cluster in size.clusters_of(number):
            state.put("clusters", cluster, ClusterBinding(shard_id, 1))
        for rack in size.racks_of(number):
            state.put("domains", (RACK, rack), shard_id)
    state.put("meta", REVISION, 1)
    return state


def zones_state(shards: int, provider: str) -> FleetState:
    """A zone for each shard, and one provider for all of them."""
    state = FleetState()
    for number in range(shards):
        shard_id = f"s-{number}"
        state.put("shards", shard_id, ShardEntry("", 1, 1 + number))
        state.put("domains", (ZONE, f"zone-{number}"), shard_id)
    state.put("providers", "bench", ProviderEntry("bench", provider))
    state.put("meta", REVISION, 1)
    return state


async def fill(directory: Path, state: FleetState) -> None:
    """Make these the rows of a new store."""
    threads = Threads("fill", 1)
    store = open_store(StorePlace("sqlite", "fill", directory), SystemClock(), threads)
    await store.open()
    try:
        await store.replace(list(all_rows(state)), 1, 1, RestoreScope.NOTHING)
    finally:
        await store.close()
        threads.close()
