"""Drains keep disruption budgets, and outlive the operator that began them."""

from functools import partial

import pytest
from budget_watch import BudgetWatch
from e2e_words import FleetOn
from real_fleet import Cluster, budget, deployment, eventually, scraped

RECLAIMING = "bigfleet.lucy.sh/reclaiming"
CALLED_OFF = "drain called off"
# An eviction that loses its caller half-way has used up its budget without taking a Pod. The API
# server gives it back after two minutes; no operator can ask for it sooner.
LOST_EVICTION = 180.0


def cordoned(cluster: Cluster) -> list[str]:
    return [
        node["metadata"]["name"]
        for node in cluster.get("nodes")
        if any(taint["key"] == RECLAIMING for taint in node["spec"].get("taints", []))
    ]


def given_back_to(cluster: Cluster, nodes: int) -> bool:
    return len(cluster.nodes()) <= nodes


def counted(cluster: Cluster, metric: str, outcome: str) -> int:
    found = scraped(cluster.metrics, f"bigfleet_operator_{metric}_total")
    return int(sum(value for labels, value in found if labels["outcome"] == outcome))


def spread_out(cluster: Cluster, count: int, unavailable: int = 1) -> None:
    """A guarded app on as many nodes as it has pods, or nearly; without fillers half are enough."""
    cluster.apply(deployment("filler", count, cpu="2500m"), deployment("app", count, cpu="1500m"))
    cluster.apply(budget("app", maxUnavailable=unavailable))
    cluster.until_running(2 * count)


def test_a_drain_keeps_the_budget(fleet_on: FleetOn) -> None:
    with fleet_on(slots=8) as fleet:
        (east,) = fleet.clusters
        spread_out(east, 5)
        with BudgetWatch(east, "app") as watch:
            east.scale("filler", 0)
            eventually(lambda: len(east.nodes()) <= 3, "nodes are given back", 120)
        assert watch.left >= 1
        assert watch.fewest >= 4
        east.until_running(5, "app")
        eventually(lambda: not cordoned(east), "no node stays cordoned")


def test_a_drain_goes_on_when_its_operator_was_killed(fleet_on: FleetOn) -> None:
    with fleet_on(slots=8) as fleet:
        (east,) = fleet.clusters
        spread_out(east, 4, unavailable=0)
        with BudgetWatch(east, "app") as watch:
            east.scale("filler", 0)
            eventually(lambda: counted(east, "evictions", "blocked"), "a drain is in its middle")
            east.operator.kill()
            # A node that happened to be empty may go on its way meanwhile; these cannot.
            held = {pod["spec"]["nodeName"] for pod in east.pods(app="app")} & set(cordoned(east))
            assert held
            east.operator.start()
            eventually(lambda: "drain resumed" in fleet.log(east.operator), "it is found again")
            assert held <= set(cordoned(east))
            assert watch.left == 0
            east.apply(budget("app", maxUnavailable=1))
            eventually(lambda: len(east.nodes()) <= 2, "the drains went on")
        assert watch.fewest >= 3
        eventually(lambda: not cordoned(east), "no node stays cordoned")
        east.until_running(4, "app")
        assert CALLED_OFF not in fleet.log(east.operator)


@pytest.mark.deep
def test_a_drain_goes_on_whenever_its_operator_was_killed(fleet_on: FleetOn) -> None:
    with fleet_on(slots=14) as fleet:
        (east,) = fleet.clusters
        spread_out(east, 8)
        with BudgetWatch(east, "app") as watch:
            east.scale("filler", 0)
            for enough in (7, 6, 5, 4):
                eventually(lambda: cordoned(east), "a drain has begun", LOST_EVICTION)
                east.operator.kill()
                east.operator.start()
                given_back = partial(given_back_to, east, enough)
                eventually(given_back, "drains go on", LOST_EVICTION)
        assert watch.fewest >= 7
        eventually(lambda: not cordoned(east), "no node stays cordoned")
        east.until_running(8, "app")
        assert CALLED_OFF not in fleet.log(east.operator)


@pytest.mark.deep
@pytest.mark.timeout(1200)
def test_a_hundred_drains_violate_no_budget(fleet_on: FleetOn) -> None:
    with fleet_on(slots=40) as fleet:
        (east,) = fleet.clusters
        spread_out(east, 20)
        with BudgetWatch(east, "app") as watch:
            while counted(east, "drains", "drained") < 100:
                east.scale("filler", 0)
                eventually(lambda: len(east.nodes()) <= 11, "nodes are given back", LOST_EVICTION)
                east.scale("filler", 20)
                east.until_running(40, seconds=LOST_EVICTION)
        assert watch.left >= 100
        assert watch.fewest >= 19
        assert counted(east, "drains", "deadline") == 0
