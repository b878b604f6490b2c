"""Taints of GPU nodes, and the architecture of nodes for Pods that name none."""

from __future__ import annotations

from typing import Any

from e2e_words import FleetOn
from real_fleet import Cluster, deployment, eventually

GPU = "nvidia.com/gpu"
ARCH = "kubernetes.io/arch"


def offering(kind: str, price: float, **more: Any) -> str:
    """One offering in YAML's flow form; the resources are those of the kwok type."""
    parts = {
        "instance_type": "kwok-4x16", "zone": "kwok-zone-a", "count": 3, "pool": kind,
        "price_usd_per_hour": price, **more,
    }  # fmt: skip
    return "{" + ", ".join(f"{name}: {value}" for name, value in parts.items()) + "}"


TAINTED = offering(
    "gpu",
    0.1,
    taints=f'["{GPU}=present:NoSchedule"]',
    resources=f'{{cpu: "4", memory: 16Gi, {GPU}: "4"}}',
    allocatable=f'{{cpu: "4", memory: 16Gi, pods: "110", {GPU}: "4"}}',
)
PLAIN = offering("plain", 0.2)
ARM = offering("arm", 0.1, labels=f"{{{ARCH}: arm64}}")


def pods(name: str, replicas: int, **spec: Any) -> dict[str, Any]:
    made = deployment(name, replicas)
    made["spec"]["template"]["spec"].update(spec)
    return made


def taints_of(cluster: Cluster) -> list[list[str]]:
    nodes = cluster.get("nodes")
    return [[taint["key"] for taint in node["spec"].get("taints", ())] for node in nodes]


def test_pods_that_tolerate_a_gpu_taint_run_and_others_buy_no_tainted_node(
    fleet_on: FleetOn,
) -> None:
    with fleet_on(provider=(f"--offerings=[{TAINTED}, {PLAIN}]",)) as fleet:
        (east,) = fleet.clusters
        # The tainted nodes are cheaper, and no use to these.
        east.apply(pods("web", 3))
        east.until_running(3, "web")
        assert not any(GPU in taints for taints in taints_of(east))
        work = [
            {"name": "work", "image": "work",
             "resources": {"requests": {"cpu": "1"}, "limits": {GPU: "1"}}}
        ]  # fmt: skip
        east.apply(
            pods("train", 2, containers=work, tolerations=[{"key": GPU, "operator": "Exists"}])
        )
        east.until_running(2, "train")
        assert sum(GPU in taints for taints in taints_of(east)) == 1
        # One that asks for a GPU and tolerates nothing waits, and is told why.
        east.apply(pods("forgot", 1, containers=work))
        eventually(
            lambda: any(
                condition["type"] == "Unmet"
                for request in east.get("capacityrequests")
                if request["metadata"]["name"].startswith("cr-pod-forgot-")
                for condition in request["status"].get("conditions", ())
            ),
            "the Pod without a toleration is unmet",
        )
        assert sum(GPU in taints for taints in taints_of(east)) == 1


def test_pods_that_name_no_architecture_run_on_amd64(fleet_on: FleetOn) -> None:
    with fleet_on(provider=(f"--offerings=[{ARM}, {PLAIN}]",)) as fleet:
        (east,) = fleet.clusters
        east.apply(pods("web", 3))
        east.until_running(3, "web")
        nodes = east.get("nodes")
        assert {node["metadata"]["labels"][ARCH] for node in nodes} == {"amd64"}
        east.apply(pods("native", 2, nodeSelector={ARCH: "arm64"}))
        east.until_running(2, "native")
        nodes = east.get("nodes")
        assert {node["metadata"]["labels"][ARCH] for node in nodes} == {"amd64", "arm64"}
