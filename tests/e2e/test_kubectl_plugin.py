"""`kubectl bigfleet` on a real API server, as kubectl-bigfleet.md has it typed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from command_blocks import blocks_of
from e2e_words import FleetOn
from real_fleet import Cluster, deployment, eventually

from kube import binaries

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "kubectl-bigfleet.md"
ADDRESS = "127.0.0.1:7780"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


def a_giant() -> dict[str, Any]:
    """A Pod that no machine of the fleet is large enough for."""
    amounts = {"requests": {"cpu": "500", "memory": "1Gi"}}
    container = {"name": "work", "image": "work", "resources": amounts}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-0", "namespace": "shop"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }


def shell(cluster: Cluster, script: str) -> str:
    """What a script of the guide prints to a person with an account in this cluster."""
    kubectl = binaries.path_of("kubectl")
    home = Path(cluster.plane.kubeconfig).parent
    path = os.pathsep.join((str(kubectl.parent), str(Path(sys.executable).parent), "/usr/bin:/bin"))
    ended = subprocess.run(
        ["bash", "-ec", script],
        env={"PATH": path, "HOME": str(home), "KUBECONFIG": str(cluster.plane.kubeconfig)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, f"{script}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


def unmet(cluster: Cluster) -> bool:
    """Whether the shard's reason has reached the request of the Pod."""
    return any(
        condition["type"] == "Unmet" and condition["status"] == "True"
        for request in cluster.get("capacityrequests")
        if request["metadata"]["namespace"] == "shop"
        for condition in request["status"].get("conditions", ())
    )


def test_every_command_of_the_guide_answers_in_a_real_cluster(fleet_on: FleetOn) -> None:
    with fleet_on(slots=2) as fleet:
        (east,) = fleet.clusters
        east.apply(NAMESPACE, deployment("served", 1, cpu="3"))
        east.apply(a_giant())
        try:
            east.until_running(1, "served")
            eventually(lambda: unmet(east), "the reason is on the request")
            shown = [
                shell(east, "\n".join(block.lines).replace(ADDRESS, fleet.sessions))
                for block in blocks_of(GUIDE)
            ]
            requests = json.loads(shell(east, "kubectl bigfleet requests -A -o json"))
        finally:
            east.plane.kubectl("delete", "pod", "web-0", "-n", "shop", "--ignore-not-found")
    pod, node, tables, with_shard = shown
    assert "Pod web-0 in namespace shop waits for a node and asks for cpu 500" in pod
    assert "It is unmet: " in pod
    assert "add --cluster-id" in pod
    assert "which BigFleet brought for need" in node
    assert "BigFleet does not take it back at present." in node
    assert "1 CapacityRequest in namespace shop: 1 unmet." in tables
    assert "0 machines on the way into this cluster, 1 in it" in tables
    assert "This cluster has 1 need, 1 of them unmet." in tables
    assert "unmet for 1 of 2: " in tables
    assert "fine  Custom resources" in tables
    assert "Its need lacks cpu 500" in with_shard
    assert "Blocked by: " in with_shard
    assert f"--shard-addr={fleet.sessions} inspect-needs --unmet --cluster=east" in with_shard
    assert {one["namespace"] for one in requests["requests"]} == {"default", "shop"}
