"""Events on Pods and Nodes: what their owners read with `kubectl describe`."""

import re
import time
from datetime import datetime
from typing import Any

from e2e_words import FleetOn
from real_fleet import Cluster, deployment, eventually, priority_class

MOST_PER_HOUR = 5
LONGER_THAN_A_VERDICT = 20.0
OURS = ("bigfleet-pod-controller", "bigfleet-operator")


def events(cluster: Cluster, kind: str, uid: str, reason: str = "") -> list[dict[str, Any]]:
    """The Events of ours on one object."""
    found = cluster.plane.api.get("/api/v1/events", fieldSelector=f"involvedObject.uid={uid}")
    return [
        one
        for one in found["items"]
        if one["source"].get("component") in OURS
        and one["involvedObject"]["kind"] == kind
        and reason in ("", one["reason"])
    ]


def uid_of(found: dict[str, Any]) -> str:
    return str(found["metadata"]["uid"])


def only_pod(cluster: Cluster, app: str) -> dict[str, Any]:
    eventually(lambda: len(cluster.pods(app=app)) == 1, f"the pod of {app} is there")
    (pod,) = cluster.pods(app=app)
    return pod


def count(cluster: Cluster, pod: dict[str, Any]) -> int:
    """Events on a Pod, each as often as it was written."""
    return sum(one.get("count") or 1 for one in events(cluster, "Pod", uid_of(pod)))


def test_a_pod_that_cannot_be_served_is_told_why_once(fleet_on: FleetOn) -> None:
    with fleet_on(slots=2) as fleet:
        (east,) = fleet.clusters
        east.apply(deployment("giant", 1, cpu="500"))
        pod = only_pod(east, "giant")
        eventually(lambda: events(east, "Pod", uid_of(pod), "CapacityUnmet"), "it is told why")
        (asked,) = events(east, "Pod", uid_of(pod), "CapacityRequested")
        assert asked["type"] == "Normal"
        assert asked["message"].startswith("Asked BigFleet for cpu 500, memory 1Gi")
        (unmet,) = events(east, "Pod", uid_of(pod), "CapacityUnmet")
        assert unmet["type"] == "Warning"
        (request,) = east.get("capacityrequests")
        (condition,) = request["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("Unmet", "True")
        assert unmet["message"] == f"No room for this Pod yet: {condition['message']}."
        assert "cpu 500" in condition["message"]
        # The replica that takes over knows what has been told.
        east.controller.kill()
        east.controller.start()
        time.sleep(LONGER_THAN_A_VERDICT)
        assert not events(east, "Pod", uid_of(pod), "NodeOnItsWay")
        assert count(east, pod) == 2
        described = east.plane.kubectl("describe", "pod", pod["metadata"]["name"])
        assert re.search(r"Warning +CapacityUnmet .* bigfleet-pod-controller +No room", described)


def test_a_pod_that_is_served_is_told_that_a_node_comes_and_when(fleet_on: FleetOn) -> None:
    with fleet_on(slots=4) as fleet:
        (east,) = fleet.clusters
        east.apply(deployment("first", 1, cpu="3"))
        first = only_pod(east, "first")
        eventually(lambda: events(east, "Pod", uid_of(first), "NodeOnItsWay"), "a node comes")
        east.until_running(1, "first")
        (coming,) = events(east, "Pod", uid_of(first), "NodeOnItsWay")
        assert "A node is on the way for the demand of this Pod (kwok-4x16" in coming["message"]
        assert "is not known yet" in coming["message"]
        east.apply(deployment("second", 1, cpu="3"))
        second = only_pod(east, "second")
        eventually(lambda: events(east, "Pod", uid_of(second), "NodeOnItsWay"), "another comes")
        (coming,) = events(east, "Pod", uid_of(second), "NodeOnItsWay")
        at = re.search(r"expected at (\d\d:\d\d:\d\d) UTC", coming["message"])
        assert at is not None, coming["message"]
        written = datetime.fromisoformat(coming["firstTimestamp"])
        hour, minute, second_ = map(int, at[1].split(":"))
        expected = written.replace(hour=hour, minute=minute, second=second_)
        assert abs((expected - written).total_seconds()) < 120
        east.until_running(2)
        for pod in (first, second):
            assert not events(east, "Pod", uid_of(pod), "CapacityUnmet")
            assert 2 <= count(east, pod) <= MOST_PER_HOUR


def test_a_node_that_is_taken_back_says_why_and_names_no_other_cluster(fleet_on: FleetOn) -> None:
    with fleet_on(clusters=2, slots=2) as fleet:
        east, west = fleet.clusters
        for cluster in (east, west):
            cluster.apply(priority_class("batch", 100), priority_class("critical", 2_000_000))
        west.apply(deployment("batch", 2, cpu="3", priority_class="batch"))
        west.until_running(2)
        nodes = {one["metadata"]["name"]: uid_of(one) for one in west.get("nodes")}
        east.apply(deployment("job", 1, cpu="3", priority_class="critical"))
        east.until_running(1, seconds=120)
        eventually(lambda: len(west.nodes()) == 1, "a machine moved")
        (gone,) = set(nodes) - set(west.nodes())
        (taken,) = events(west, "Node", nodes[gone], "Reclaiming")
        assert taken["type"] == "Warning"
        assert "demand of priority 2000000 needs its machine" in taken["message"]
        assert re.search(r"Its Pods have \d+ (s|min) to leave", taken["message"])
        waiting = next(pod for pod in west.pods("Pending", "batch"))
        eventually(lambda: events(west, "Pod", uid_of(waiting), "CapacityUnmet"), "why it waits")
        found = west.plane.api.get("/api/v1/events")["items"]
        told = [one["message"] for one in found if one["source"].get("component") in OURS]
        assert not any(east.name in message for message in told)
        assert count(west, waiting) <= MOST_PER_HOUR
        # Scaled down, the node that is left goes because nothing needs it.
        west.scale("batch", 0)
        eventually(lambda: not west.nodes(), "the other one is given back", 120)
        (left,) = set(nodes) - {gone}
        (idle,) = events(west, "Node", nodes[left], "Reclaiming")
        assert idle["type"] == "Normal"
        assert "no demand of this cluster needs it" in idle["message"]
