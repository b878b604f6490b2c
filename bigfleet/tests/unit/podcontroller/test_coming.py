"""Which nodes are on their way, and when they are expected."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from statistics import median
from typing import Any

import pytest

from bigfleet.kube import Change, ChangeKind
from bigfleet.podcontroller.arrivals import LONGEST_S, REMEMBERED, ComingNodes
from bigfleet.podcontroller.pods import ArrivingNode, RequestNeed, WatchedNode
from kubeobjects import node, read

NEED = RequestNeed("p" * 32)
NOW = 1_750_000_000.0


def moment(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def put(coming: ComingNodes, name: str, phase: str, started: float = NOW, **more: Any) -> None:
    document = {
        "metadata": {"name": name, "labels": {"bigfleet.lucy.sh/profile": NEED.profile}},
        "spec": {"labels": {"node.kubernetes.io/instance-type": more.get("kind", "big-4")}},
        "status": {
            "phase": phase,
            "provisioningStartTime": moment(started),
            "nodeRef": {"name": more.get("node", f"n-{name}")},
        },
    }
    coming.machine_seen(Change(ChangeKind.ADDED, name, None, read(ArrivingNode, document)))


def ready(coming: ComingNodes, name: str, since: float | None) -> None:
    document = node(name, ready=since is not None)
    if since is not None:
        document["status"]["conditions"][0]["lastTransitionTime"] = moment(since)
    coming.node_seen(Change(ChangeKind.ADDED, name, None, read(WatchedNode, document)))


def went(coming: ComingNodes, name: str) -> None:
    coming.machine_seen(Change(ChangeKind.DELETED, name, None, None))


@pytest.mark.parametrize("phase", ["", "Provisioning", "Launched", "Registered"])
def test_a_machine_is_on_its_way_until_it_is_a_node(phase: str) -> None:
    coming = ComingNodes(lambda: NOW)
    put(coming, "m-1", phase)
    found = coming.of(NEED)
    assert found is not None
    assert (found.count, found.first, found.kind) == (1, "m-1", "big-4")
    went(coming, "m-1")
    assert coming.of(NEED) is None


@pytest.mark.parametrize("phase", ["Draining", "Drained", "Failed"])
def test_a_machine_that_leaves_or_failed_is_not_on_its_way(phase: str) -> None:
    coming = ComingNodes(lambda: NOW)
    put(coming, "m-1", phase)
    assert coming.of(NEED) is None


def test_a_machine_that_was_handed_over_comes_until_its_node_is_ready() -> None:
    coming = ComingNodes(lambda: NOW)
    put(coming, "m-1", "Ready")
    ready(coming, "n-m-1", None)
    assert coming.of(NEED) is not None
    ready(coming, "n-m-1", NOW)
    assert coming.of(NEED) is None
    put(coming, "m-2", "Ready", NOW - LONGEST_S - 1)
    assert coming.of(NEED) is None


def test_no_need_and_an_unnamed_one_have_nothing_on_its_way() -> None:
    coming = ComingNodes(lambda: NOW)
    put(coming, "m-1", "Provisioning")
    assert coming.of(None) is None
    assert coming.of(RequestNeed("")) is None
    assert coming.of(RequestNeed(NEED.profile, "a gang")) is None


def test_the_first_one_is_the_one_that_comes_for_the_longest_time() -> None:
    coming = ComingNodes(lambda: NOW)
    put(coming, "m-3", "Provisioning", NOW - 10)
    put(coming, "m-1", "Launched", NOW - 30)
    put(coming, "m-2", "Provisioning", NOW - 20)
    found = coming.of(NEED)
    assert found is not None
    assert (found.count, found.first, found.expected_unix_s) == (3, "m-1", None)


def test_what_is_expected_is_the_median_of_the_newest_nodes_of_the_type() -> None:
    chance = Random(7)
    for _ in range(50):
        coming = ComingNodes(lambda: NOW)
        took: list[tuple[float, float]] = []
        for number in range(chance.randrange(1, 3 * REMEMBERED)):
            started = NOW - 5000 - 10 * number
            seconds = float(chance.choice((20, 45, 90, 300, LONGEST_S + 5, -30)))
            put(coming, f"old-{number}", "Ready", started)
            ready(coming, f"n-old-{number}", started + seconds)
            if 0 <= seconds < LONGEST_S:
                took.append((started, seconds))
        put(coming, "other", "Ready", NOW - 100, kind="small-1")
        ready(coming, "n-other", NOW)
        put(coming, "new", "Provisioning", NOW - 5)
        found = coming.of(NEED)
        assert found is not None
        newest = [seconds for _, seconds in sorted(took)[-REMEMBERED:]]
        expected = NOW - 5 + median(newest) if newest else None
        assert found.expected_unix_s == expected


def test_times_that_cannot_be_read_are_left_out() -> None:
    coming = ComingNodes(lambda: NOW)
    document = {"metadata": {"name": "m"}, "status": {"provisioningStartTime": "yesterday"}}
    coming.machine_seen(Change(ChangeKind.ADDED, "m", None, read(ArrivingNode, document)))
    assert coming.of(NEED) is None
