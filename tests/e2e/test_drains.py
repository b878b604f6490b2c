"""Drains keep disruption budgets, and outlive the operator that began them."""

import threading

from e2e_words import FleetOn
from real_fleet import Cluster, budget, deployment, eventually

RECLAIMING = "bigfleet.lucy.sh/reclaiming"


class BudgetWatch:
    """Looks all the time how many pods of an app run, and remembers the fewest."""

    def __init__(self, cluster: Cluster, app: str) -> None:
        self.fewest = 10**9
        self.looks = 0
        self._cluster, self._app = cluster, app
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._over.wait(0.1):
            self.fewest = min(self.fewest, self._cluster.running(self._app))
            self.looks += 1

    def __enter__(self) -> "BudgetWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def cordoned(cluster: Cluster) -> list[str]:
    return [
        node["metadata"]["name"]
        for node in cluster.get("nodes")
        if any(taint["key"] == RECLAIMING for taint in node["spec"].get("taints", []))
    ]


def spread_out(cluster: Cluster, fillers: int) -> None:
    """A guarded app whose pods lie on nodes that will be given back."""
    cluster.apply(deployment("filler", fillers, cpu="2"), deployment("app", fillers, cpu="1500m"))
    cluster.apply(budget("app", maxUnavailable=1))
    cluster.until_running(2 * fillers)


def test_a_drain_keeps_the_budget(fleet_on: FleetOn) -> None:
    with fleet_on(slots=6) as fleet:
        (east,) = fleet.clusters
        spread_out(east, 5)
        with BudgetWatch(east, "app") as watch:
            # Without the fillers half of the nodes are enough, and the app has to move together.
            east.scale("filler", 0)
            eventually(lambda: len(east.nodes()) <= 3, "nodes are given back", 120)
        assert watch.looks > 5
        assert watch.fewest >= 4
        east.until_running(5, "app")
        assert cordoned(east) == []


def test_a_drain_goes_on_when_its_operator_was_killed(fleet_on: FleetOn) -> None:
    with fleet_on(slots=6) as fleet:
        (east,) = fleet.clusters
        spread_out(east, 4)
        east.scale("filler", 0)
        eventually(lambda: cordoned(east), "a drain has begun")
        east.operator.kill()
        east.operator.start()
        eventually(lambda: len(east.nodes()) <= 2, "the drains went on")
        eventually(lambda: not cordoned(east), "no node stays cordoned for ever")
        east.until_running(4, "app")
        assert "drain called off" not in east.operator.log.read_text()
