"""From a pending pod to a running one, and back to a machine that is not paid for."""

import statistics
import time

import pytest
from e2e_scenarios import PENDING, pods_at_once, pods_in_a_row
from e2e_words import FleetOn
from real_fleet import deployment, eventually

LONGER_THAN_HOLDS = 8.0


def test_pending_pods_get_nodes_and_run(fleet_on: FleetOn) -> None:
    with fleet_on(slots=6) as fleet:
        (east,) = fleet.clusters
        east.apply(deployment("web", 10))
        east.until_running(10)
        # Ten pods of one CPU need three nodes of four; what DaemonSets take there is nothing.
        assert 3 <= len(east.nodes()) <= 4

        def named() -> list[str]:
            shown = [one["status"] for one in east.get("upcomingnodes")]
            ready = [one for one in shown if one["phase"] == "Ready"]
            return sorted(one.get("nodeRef", {}).get("name", "") for one in ready)

        eventually(lambda: named() == sorted(east.nodes()), "every node is shown as a machine")


def test_fewer_pods_give_nodes_back_until_none_is_paid_for(fleet_on: FleetOn) -> None:
    with fleet_on(slots=6) as fleet:
        (east,) = fleet.clusters
        east.apply(deployment("web", 12))
        east.until_running(12)
        nodes = len(east.nodes())
        assert nodes >= 3
        east.scale("web", 1)
        eventually(lambda: len(east.nodes()) == 1, "one node is enough for one pod")
        east.until_running(1, "web")
        east.scale("web", 0)
        eventually(lambda: not east.nodes(), "no node is left")
        eventually(lambda: fleet.machines("Speculative") == 6, "every machine was given back")
        eventually(lambda: not east.get("upcomingnodes"), "no machine is shown any more")


def test_requests_are_acknowledged_and_can_be_selected_by_phase(fleet_on: FleetOn) -> None:
    # That one which stays unmet is told why: the story of an application developer.
    with fleet_on(slots=4) as fleet:
        (east,) = fleet.clusters
        east.apply(deployment("web", 3), deployment("giant", 1, cpu="500"))
        eventually(
            lambda: (
                len(east.get("capacityrequests")) == 4
                and not east.get("capacityrequests", fields=PENDING)
            ),
            "all requests are acknowledged",
        )
        assert len(east.get("capacityrequests", fields="status.phase=Acknowledged")) == 4
        for request in east.get("capacityrequests"):
            assert request["status"]["acknowledgedAt"]
            assert request["metadata"]["name"].startswith("cr-pod-")
            assert request["metadata"]["ownerReferences"][0]["kind"] == "Pod"
        east.until_running(3, "web")
        assert east.running("giant") == 0


def test_pods_that_do_not_pack_get_one_more_node_and_keep_it(fleet_on: FleetOn) -> None:
    with fleet_on(slots=10, controller=("--ask-again-after=4s",)) as fleet:
        (east,) = fleet.clusters
        # One row of 28 CPU, which seven nodes of four meet; no seven hold these sixteen pods.
        east.apply(deployment("some", 8, cpu="1500m"), deployment("more", 8, cpu="2"))
        east.until_running(16)
        nodes = set(east.nodes())
        assert 8 <= len(nodes) <= 9
        asked = {one["metadata"]["name"] for one in east.get("capacityrequests")}
        assert len(asked) > 16
        time.sleep(LONGER_THAN_HOLDS)
        assert set(east.nodes()) == nodes
        assert east.running() == 16
        assert {one["metadata"]["name"] for one in east.get("capacityrequests")} == asked


@pytest.mark.deep
def test_two_hundred_pods_one_after_the_other_wait_a_few_seconds_each(fleet_on: FleetOn) -> None:
    with fleet_on(slots=80, operator=()) as fleet:
        waits = pods_in_a_row(fleet.clusters[0], 200)
    p50, p99 = statistics.median(waits), waits[int(len(waits) * 0.99) - 1]
    assert p50 <= 6
    assert p99 <= 15


@pytest.mark.deep
def test_a_thousand_pods_at_once_run_within_ninety_seconds(fleet_on: FleetOn) -> None:
    with fleet_on(slots=300, operator=()) as fleet:
        acknowledged, running = pods_at_once(fleet.clusters[0], 1000)
    assert acknowledged <= 30
    assert running <= 90
