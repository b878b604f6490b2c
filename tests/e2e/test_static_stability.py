"""With parts or all of BigFleet down clusters keep running, and nothing is taken on return."""

import os
import time

import pytest
from e2e_words import FleetOn
from real_fleet import Cluster, Fleet, deployment, eventually

Picture = tuple[frozenset[str], frozenset[str]]
HOLDS = 8.0
DOWN_SECONDS = float(os.environ.get("BIGFLEET_E2E_DOWN", "10"))


def picture(cluster: Cluster) -> Picture:
    """Running pods and nodes, by identity."""
    pods = frozenset(pod["metadata"]["uid"] for pod in cluster.pods("Running"))
    return pods, frozenset(node["metadata"]["uid"] for node in cluster.get("nodes"))


def settled(fleet: Fleet, cluster: Cluster) -> Picture:
    cluster.apply(deployment("web", 8))
    cluster.until_running(8)
    eventually(lambda: fleet.machines("Configured") == len(cluster.nodes()), "the shard sees it")
    return picture(cluster)


def unchanged_for(cluster: Cluster, before: Picture, seconds: float) -> None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        assert picture(cluster) == before
        time.sleep(1.0)


def down_and_back(fleet_on: FleetOn, seconds: float) -> None:
    with fleet_on(slots=4) as fleet:
        (east,) = fleet.clusters
        before = settled(fleet, east)
        requests = {one["metadata"]["uid"] for one in east.get("capacityrequests")}
        fleet.stop()
        unchanged_for(east, before, seconds)
        assert {one["metadata"]["uid"] for one in east.get("capacityrequests")} == requests
        # Longer than every hold of this fleet: a shard would have had the time to reclaim. First
        # without a roll-up, when no cluster asks for any machine, and then with one.
        for returning in ((fleet.provider, fleet.shard), fleet.processes):
            for process in returning:
                process.start()
            eventually(lambda: fleet.machines("Configured"), "the shard has listed its machines")
            unchanged_for(east, before, HOLDS)
        east.scale("web", 14)
        east.until_running(14)
        assert before[0] <= picture(east)[0]


def test_with_everything_down_nothing_happens_and_nothing_is_taken_on_return(
    fleet_on: FleetOn,
) -> None:
    down_and_back(fleet_on, DOWN_SECONDS)


@pytest.mark.deep
def test_a_minute_without_bigfleet(fleet_on: FleetOn) -> None:
    down_and_back(fleet_on, 60)


def test_a_dead_shard_leaves_pods_alone_and_goes_on_where_it_was(fleet_on: FleetOn) -> None:
    with fleet_on(slots=4) as fleet:
        (east,) = fleet.clusters
        before = settled(fleet, east)
        fleet.shard.kill()
        unchanged_for(east, before, 6)
        east.scale("web", 12)
        eventually(lambda: len(east.pods("Pending")) >= 1, "there is more than nodes hold")
        assert before[0] <= picture(east)[0]
        fleet.shard.start()
        east.until_running(12)
        assert before[0] <= picture(east)[0]
        assert before[1] <= picture(east)[1]


@pytest.mark.deep
def test_a_dead_provider_is_waited_for(fleet_on: FleetOn) -> None:
    with fleet_on(slots=4) as fleet:
        (east,) = fleet.clusters
        before = settled(fleet, east)
        fleet.provider.kill()
        east.scale("web", 12)
        eventually(lambda: len(east.pods("Pending")) >= 1, "there is more than nodes hold")
        assert before[0] <= picture(east)[0]
        fleet.provider.start()
        east.until_running(12)
        assert before[1] <= picture(east)[1]
