"""The operator and the pod controller on a real API server, with a real shard's sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from bigfleet.model import MachineState
from bigfleet.shard.operators.messages import Instruction
from kube.plane import ControlPlane
from kubeobjects import node
from operators import Desk, machine
from realcluster import (
    cluster,
    is_ready,
    items,
    operator,
    pod_controller,
    put,
    shard_sessions,
    until,
)

Document = dict[str, Any]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with cluster() as made:
        yield made


def pod(name: str, **spec: Any) -> Document:
    container = {
        "name": "main",
        "image": "example.com/none",
        "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [container], **spec},
    }


def joined(name: str, host: str) -> Document:
    made = node(name, provider_id=f"test:///{host}", labels={"bigfleet.lucy.sh/machine-id": "m-1"})
    del made["metadata"]["uid"], made["metadata"]["creationTimestamp"]
    made["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
    room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    made["status"] = {"allocatable": room, "capacity": room}
    return made


def phases(plane: ControlPlane) -> list[str]:
    return [one["status"]["phase"] for one in items(plane, "capacityrequests")]


def names(plane: ControlPlane, kind: str, *more: str) -> list[str]:
    return [one["metadata"]["name"] for one in items(plane, kind, *more)]


async def cleared(plane: ControlPlane) -> None:
    for kind in ("pods", "capacityrequests", "pdb"):
        await asyncio.to_thread(
            plane.kubectl, "delete", kind, "--all", "-n", "default", "--wait=false", "--force"
        )
    for kind in ("nodes", "upcomingnodes"):
        await asyncio.to_thread(plane.kubectl, "delete", kind, "--all", "--wait=false")
    await until(lambda: not names(plane, "pods") and not names(plane, "nodes"), "an empty cluster")


async def test_from_pod_to_acknowledged_and_away_again(plane: ControlPlane) -> None:
    desk = Desk()
    async with (
        shard_sessions(desk) as address,
        pod_controller(plane),
        operator(plane, address) as running,
    ):
        put(plane, *(pod(f"web-{n}") for n in range(5)))
        await until(lambda: phases(plane) == ["Acknowledged"] * 5, "acknowledgement")
        assert not names(plane, "capacityrequests", "--field-selector=status.phase=Pending")
        assert "c-1" in desk.metrics.accepted

        await until(lambda: is_ready(running.metrics_address), "readiness")
        plane.kubectl("delete", "pod", "web-0", "-n", "default", "--force")
        await until(lambda: len(phases(plane)) == 4, "the request going with its pod")
    await cleared(plane)


async def test_a_machine_is_seen_named_and_drained_with_its_budget_kept(
    plane: ControlPlane,
) -> None:
    desk = Desk()
    desk.book.take(machine("m-1", MachineState.CONFIGURED, cluster="c-1"))
    host = desk.book.get("m-1")
    assert host is not None
    assert host.host is not None
    async with shard_sessions(desk) as address, operator(plane, address) as running:
        await until(lambda: names(plane, "upcomingnodes") == ["un-m-1"], "the UpcomingNode")
        put(plane, joined("n-1", host.host.ref))
        put(plane, pod("web-0", nodeName="n-1"), pod("web-1", nodeName="n-1"))
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
        }
        put(plane, budget)
        await until(lambda: desk.observed.node_name("m-1") == "n-1", "the node's name")
        await until(
            lambda: items(plane, "pdb")[0].get("status", {}).get("currentHealthy") == 2,
            "healthy pods",
        )
        acked: list[tuple[str, bool, tuple[str, ...]]] = []
        desk.sessions.on_reclaim_ack.append(
            lambda cluster, which, second, left: acked.append((which, second, left))
        )
        # A shard lets go of cordoned nodes that it does not want back.
        desk.book.leave("m-1", None)
        desk.sessions.send_reclaim("c-1", Instruction("i-1", "n-1", 5))
        await until(lambda: ("i-1", True, ("n-1",)) in acked, "the end of the grace")
        assert sorted(names(plane, "pods")) == ["web-0", "web-1"]
        spec = items(plane, "nodes")[0]["spec"]
        assert spec["unschedulable"]
        desk.sessions.send_reclaim("c-1", Instruction("i-1", "n-1", 0, cancel=True))
        await until(
            lambda: not items(plane, "nodes")[0]["spec"].get("unschedulable"), "the uncordon"
        )
        assert "taints" not in items(plane, "nodes")[0]["spec"]
        plane.kubectl("delete", "pdb", "web", "-n", "default")
        desk.sessions.send_reclaim("c-1", Instruction("i-2", "n-1", 60))
        await until(lambda: ("i-2", True, ()) in acked, "an empty node")
        assert not names(plane, "pods")
        assert running.operator.drains.active == 0
    await cleared(plane)


async def test_of_two_operators_one_leads_and_the_other_takes_over(plane: ControlPlane) -> None:
    desk = Desk()
    async with shard_sessions(desk) as address:
        async with operator(plane, address, identity="one"):
            await until(lambda: desk.metrics.accepted, "a first roll-up")
            async with operator(plane, address, identity="two") as other:
                await until(lambda: is_ready(other.metrics_address), "one that stands by")
                assert not other.operator.connection.is_open
            before = len(desk.metrics.accepted)
        async with operator(plane, address, identity="three"):
            await until(lambda: len(desk.metrics.accepted) > before, "the next one's roll-up", 20)
    await cleared(plane)


async def test_the_api_server_may_go_away_for_a_while(plane: ControlPlane) -> None:
    desk = Desk()
    async with (
        shard_sessions(desk) as address,
        pod_controller(plane),
        operator(plane, address),
    ):
        put(plane, pod("before"))
        await until(lambda: phases(plane) == ["Acknowledged"], "acknowledgement")
        plane.processes["kube-apiserver"].kill()
        await asyncio.sleep(3)
        await asyncio.to_thread(plane.restart_api_server)
        put(plane, pod("after"))
        await until(lambda: phases(plane) == ["Acknowledged"] * 2, "acknowledgement again", 90)
    await cleared(plane)
