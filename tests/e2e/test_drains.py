"""Drains keep disruption budgets, and outlive the operator that began them."""

from functools import partial

import pytest
from budget_watch import BudgetWatch
from e2e_words import FleetOn
from real_fleet import Cluster, budget, deployment, eventually, scraped

RECLAIMING = "bigfleet.lucy.sh/reclaiming"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
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


def has_begun(cluster: Cluster, nodes: int) -> bool:
    return bool(cordoned(cluster)) or given_back_to(cluster, nodes)


def counted(cluster: Cluster, metric: str, outcome: str) -> int:
    found = scraped(cluster.metrics, f"bigfleet_operator_{metric}_total")
    return int(sum(value for labels, value in found if labels["outcome"] == outcome))


def spread_out(cluster: Cluster, count: int, unavailable: int = 1) -> None:
    """A guarded app with one pod on each node, where two would fit: half of them are enough."""
    cluster.apply(budget("app", maxUnavailable=unavailable), deployment("app", 0, cpu="2"))
    halve(cluster, count)


def halve(cluster: Cluster, count: int) -> None:
    """Two pods on each of so many nodes, and then one."""
    cluster.scale("app", 2 * count)
    cluster.until_running(2 * count, "app", LOST_EVICTION)
    second = {pod["spec"]["nodeName"]: pod["metadata"]["name"] for pod in cluster.pods(app="app")}
    for name in second.values():
        cheap = {"metadata": {"annotations": {DELETION_COST: "-1"}}}
        cluster.plane.api.patch(f"/api/v1/namespaces/default/pods/{name}", cheap)
    cluster.scale("app", count)
    cluster.until_running(count, "app")


def test_a_drain_keeps_the_budget(fleet_on: FleetOn) -> None:
    with fleet_on(slots=6) as fleet:
        (east,) = fleet.clusters
        spread_out(east, 5)
        with BudgetWatch(east, "app") as watch:
            eventually(lambda: len(east.nodes()) <= 3, "nodes are given back", 120)
        assert watch.left >= 2
        assert watch.fewest >= 4
        east.until_running(5, "app")
        eventually(lambda: not cordoned(east), "no node stays cordoned")


def test_a_drain_goes_on_when_its_operator_was_killed(fleet_on: FleetOn) -> None:
    with fleet_on(slots=5) as fleet:
        (east,) = fleet.clusters
        spread_out(east, 4, unavailable=0)
        with BudgetWatch(east, "app") as watch:
            eventually(lambda: counted(east, "evictions", "blocked"), "a drain is in its middle")
            east.operator.kill()
            held = cordoned(east)
            assert held
            east.operator.start()
            eventually(lambda: "drain resumed" in fleet.log(east.operator), "it is found again")
            holding = cordoned(east)
            # A fifth node may have come up and be empty: that one is given back meanwhile.
            assert set(held) & set(east.nodes()) <= set(holding)
            assert watch.left == 0
            east.apply(budget("app", maxUnavailable=1))
            eventually(lambda: len(east.nodes()) <= 2, "the drains went on")
        assert watch.fewest >= 3
        eventually(lambda: not cordoned(east), "no node stays cordoned")
        east.until_running(4, "app")
        assert CALLED_OFF not in fleet.log(east.operator)


@pytest.mark.deep
def test_a_drain_goes_on_whenever_its_operator_was_killed(fleet_on: FleetOn) -> None:
    with fleet_on(slots=9) as fleet:
        (east,) = fleet.clusters
        spread_out(east, 8)
        with BudgetWatch(east, "app") as watch:
            for enough in (7, 6, 5, 4):
                begun = partial(has_begun, east, enough)
                eventually(begun, "a drain has begun", LOST_EVICTION)
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
    with fleet_on(slots=30) as fleet:
        (east,) = fleet.clusters
        spread_out(east, 20)
        moved = 0
        while counted(east, "drains", "drained") < 100:
            with BudgetWatch(east, "app") as watch:
                eventually(lambda: len(east.nodes()) <= 10, "nodes are given back", LOST_EVICTION)
            assert watch.fewest >= 19
            moved += watch.left
            halve(east, 20)
        assert moved >= 100
        assert counted(east, "drains", "deadline") == 0
