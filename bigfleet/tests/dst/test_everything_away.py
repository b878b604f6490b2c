"""All of BigFleet away for an hour: clusters keep what they have, and nothing is taken on return.

The same on real clusters, for a minute: tests/e2e/test_static_stability.py.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bigfleet.model import CapacityType
from sim.drawing import ProviderPlan
from sim.settled import unsettled
from whole.living import Setting, Whole, cluster, live, offers
from whole.several import HOMES

HOUR = 3_600.0
Bindings = dict[str, str]
"""Machine -> its cluster, as the provider knows it."""


def setting() -> Setting:
    """Two shards with a cluster each, on machines given back as soon as no cluster asks."""
    machines = (*offers(6, CapacityType.ON_DEMAND), *offers(6, CapacityType.RESERVED))
    clusters = [cluster("c1", 3), cluster("c2", 3)]
    return Setting([ProviderPlan("p1", machines)], clusters, homes=HOMES)


def bindings(whole: Whole) -> Bindings:
    return {slot.id: slot.cluster for slot in whole.provider.slots.values() if slot.cluster}


async def settled(whole: Whole) -> Bindings:
    for name in HOMES:
        await whole.until(lambda name=name: whole.bound(name) == 3, 300.0, f"the start of {name}")  # type: ignore[misc]
    await asyncio.sleep(120.0)
    return bindings(whole)


def go_away(whole: Whole) -> None:
    """Operators, shards, coordinator and provider, all at once."""
    for name, shard in HOMES.items():
        whole.world.network.cut(name, shard)
        whole.operator(name).disconnect()
    for host in whole.world.hosts.values():
        host.go_away()
    assert whole.world.coordinator is not None
    whole.world.coordinator.go_away()
    whole.provider.stop()


def come_back(whole: Whole) -> None:
    """All but the operators."""
    whole.provider.start()
    assert whole.world.coordinator is not None
    whole.world.coordinator.start()
    for host in whole.world.hosts.values():
        host.start()


def operators_come_back(whole: Whole) -> None:
    for name, shard in HOMES.items():
        whole.world.network.repair(name, shard)


def test_after_an_hour_without_bigfleet_every_cluster_has_its_machines() -> None:
    async def story(whole: Whole) -> None:
        before = await settled(whole)
        counts = whole.world.monitor.counts
        ordered = dict(counts)
        go_away(whole)
        await asyncio.sleep(HOUR)
        assert bindings(whole) == before
        come_back(whole)
        # No cluster has reported: whatever looks free serves a cluster.
        await asyncio.sleep(600.0)
        assert bindings(whole) == before
        assert counts.get("Reclaim", 0) == ordered.get("Reclaim", 0)
        operators_come_back(whole)
        await asyncio.sleep(600.0)
        assert bindings(whole) == before
        assert counts == ordered
        assert unsettled(whole.world) is None

    live(setting(), story)


def test_what_clusters_no_longer_ask_for_goes_only_after_they_said_so() -> None:
    async def story(whole: Whole) -> None:
        before = await settled(whole)
        go_away(whole)
        await asyncio.sleep(HOUR / 2)
        whole.scale(2, "c1")
        await asyncio.sleep(HOUR / 2)
        come_back(whole)
        await asyncio.sleep(600.0)
        assert bindings(whole) == before
        operators_come_back(whole)
        await whole.until(lambda: whole.bound("c1") == 2, 300.0, "what c1 gave back")
        assert whole.bound("c2") == 3

    live(replace(setting(), seed=2), story)
