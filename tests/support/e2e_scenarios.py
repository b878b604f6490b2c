"""What the long e2e tests and the benchmark do alike: pods that come, and how long they wait."""

import time
from datetime import datetime
from functools import partial

from real_fleet import Cluster, deployment, eventually, is_ready

PENDING = "status.phase=Pending"


def until_ready(cluster: Cluster) -> None:
    """Wait for operator and pod controller: how long they take to start is not a pod's wait."""
    for address in (cluster.metrics, cluster.pod_metrics):
        eventually(partial(is_ready, address), f"{cluster.name}: {address} is ready")


def seconds_to_run(cluster: Cluster) -> list[float]:
    """From the creation of each pod to its start, to the second as the API server tells it."""
    found = []
    for pod in cluster.pods("Running"):
        made = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
        begun = datetime.fromisoformat(pod["status"]["startTime"])
        found.append((begun - made).total_seconds())
    return sorted(found)


def pods_in_a_row(cluster: Cluster, count: int) -> list[float]:
    """Five more pods every second; how long each waited."""
    until_ready(cluster)
    cluster.apply(deployment("web", 1))
    cluster.until_running(1)
    for replicas in range(5, count + 1, 5):
        cluster.scale("web", replicas)
        time.sleep(1.0)
    eventually(lambda: cluster.running() == count, f"{count} pods run", poll=0.5)
    return seconds_to_run(cluster)


def pods_at_once(cluster: Cluster, count: int) -> tuple[float, float]:
    """Seconds until all requests were acknowledged, and until all pods ran."""
    until_ready(cluster)
    begun = time.monotonic()
    cluster.apply(deployment("web", count))
    eventually(
        lambda: (
            len(cluster.get("capacityrequests")) == count
            and not cluster.get("capacityrequests", fields=PENDING)
        ),
        "all requests are acknowledged",
        180,
        poll=1.0,
    )
    acknowledged = time.monotonic() - begun
    eventually(lambda: cluster.running() == count, f"{count} pods run", 240, poll=1.0)
    return acknowledged, time.monotonic() - begun
