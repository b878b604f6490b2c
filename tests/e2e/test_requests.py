"""One CapacityRequest for each pod, whatever dies or breaks meanwhile."""

from pathlib import Path
from random import Random

import pytest
from broken_line import BrokenLine, a_broken_line
from e2e_words import FleetOn
from real_fleet import Cluster, deployment, eventually

from kube.plane import ControlPlane


def owners(cluster: Cluster) -> list[str]:
    requests = cluster.get("capacityrequests")
    return sorted(one["metadata"]["ownerReferences"][0]["uid"] for one in requests)


def wanted(cluster: Cluster) -> list[str]:
    return sorted(pod["metadata"]["uid"] for pod in cluster.pods())


def in_step(cluster: Cluster, count: int) -> bool:
    """So many pods, one request for each of them, and no other."""
    found = wanted(cluster)
    return len(found) == count and owners(cluster) == found


def none_twice(cluster: Cluster) -> bool:
    found = owners(cluster)
    return len(set(found)) == len(found)


def churn(cluster: Cluster, line: BrokenLine, rounds: int, rng: Random) -> None:
    """More and fewer pods, while connections break and the controller dies."""
    cluster.apply(deployment("web", 10))
    for number in range(rounds):
        before, replicas = owners(cluster), rng.choice((0, 5, 20, 40))
        cluster.scale("web", replicas)
        if number % 2:
            line.break_all()
        if number % 3 == 0:
            cluster.controller.kill()
            cluster.controller.start()
        if rng.random() < 0.7 and replicas != len(before):
            # In the middle of it: some requests are written or gone, and others are not.
            eventually(lambda before=before: owners(cluster) != before, "something happens")  # type: ignore[misc]
        line.break_all()
        assert none_twice(cluster)


def test_requests_follow_pods_through_broken_watches_and_dead_controllers(
    fleet_on: FleetOn, east: ControlPlane, tmp_path: Path
) -> None:
    with a_broken_line(east, tmp_path) as line:
        own = {east.name: (east.kubeconfig, line.kubeconfig)}
        with fleet_on(slots=4, kubeconfigs=own) as fleet:
            (cluster,) = fleet.clusters
            churn(cluster, line, 12, Random(1))
            cluster.scale("web", 12)
            eventually(lambda: in_step(cluster, 12), "one request for each pod, and no other")
            cluster.scale("web", 3)
            eventually(lambda: in_step(cluster, 3), "requests go with their pods")


@pytest.mark.deep
@pytest.mark.timeout(1200)
def test_requests_follow_pods_through_a_long_row_of_breaks_and_api_servers_that_go_away(
    fleet_on: FleetOn, east: ControlPlane, tmp_path: Path
) -> None:
    rng = Random(2)
    with a_broken_line(east, tmp_path) as line:
        own = {east.name: (east.kubeconfig, line.kubeconfig)}
        with fleet_on(slots=4, kubeconfigs=own) as fleet:
            (cluster,) = fleet.clusters
            for _ in range(4):
                churn(cluster, line, 15, rng)
                cluster.scale("web", 30)
                east.processes["kube-apiserver"].kill()
                east.restart_api_server()
                eventually(
                    lambda: in_step(cluster, 30), "one request for each pod, and no other", 180
                )
