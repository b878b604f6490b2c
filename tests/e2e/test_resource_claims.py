"""Pods that get their devices by ResourceClaims, on a cluster with Dynamic Resource Allocation."""

from __future__ import annotations

from typing import Any

from e2e_words import FleetOn
from real_fleet import Cluster, deployment, eventually

GPU = "nvidia.com/gpu"
CLASS, UNMAPPED = "gpu.example.com", "fpga.example.com"
API = "resource.k8s.io/v1"
Document = dict[str, Any]
RESOURCES = f'{{cpu: "4", memory: 16Gi, {GPU}: "4"}}'
ALLOCATABLE = f'{{cpu: "4", memory: 16Gi, pods: "110", {GPU}: "4"}}'
PLAIN = (
    "{instance_type: kwok-4x16, zone: kwok-zone-a, count: 3, pool: plain, price_usd_per_hour: 0.1}"
)
WITH_GPUS = (
    "{instance_type: kwok-4x16, zone: kwok-zone-a, count: 3, pool: gpu, price_usd_per_hour: 0.5, "
    f"resources: {RESOURCES}, allocatable: {ALLOCATABLE}}}"
)


def named(kind: str, name: str, spec: Document, *, everywhere: bool = False) -> Document:
    """An object of the group of devices."""
    metadata = {"name": name} if everywhere else {"name": name, "namespace": "default"}
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}


def devices(name: str, count: int) -> Document:
    """The spec of a claim for devices of a class."""
    exactly = {"deviceClassName": name, "allocationMode": "ExactCount", "count": count}
    return {"devices": {"requests": [{"name": "devices", "exactly": exactly}]}}


def pods(name: str, replicas: int, **source: str) -> Document:
    """A Deployment whose Pods have a claim."""
    made = deployment(name, replicas)
    spec = made["spec"]["template"]["spec"]
    spec["resourceClaims"] = [{"name": "devices", **source}]
    spec["containers"][0]["resources"]["claims"] = [{"name": "devices"}]
    return made


def published(node: str) -> Document:
    """Four devices of a node, as the driver on it would publish them."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    found = [{"name": f"gpu-{number}"} for number in range(4)]
    spec = {"driver": CLASS, "nodeName": node, "pool": pool, "devices": found}
    return named("ResourceSlice", node, spec, everywhere=True)


def with_devices(cluster: Cluster) -> list[str]:
    """Names of nodes that have devices."""
    nodes = cluster.get("nodes")
    return [
        node["metadata"]["name"]
        for node in nodes
        if node["status"].get("allocatable", {}).get(GPU) == "4"
    ]


def requested(cluster: Cluster, app: str) -> list[int]:
    """Devices in the CapacityRequests of the Pods of a Deployment."""
    return sorted(
        int(request["spec"]["resources"].get(GPU, 0))
        for request in cluster.get("capacityrequests")
        if request["metadata"]["name"].startswith(f"cr-pod-{app}-")
    )


def test_claims_bring_nodes_with_devices_and_unmapped_classes_bring_none(fleet_on: FleetOn) -> None:
    with fleet_on(
        provider=(f"--offerings=[{PLAIN}, {WITH_GPUS}]",),
        controller=(f"--device-class-mappings={CLASS}={GPU}",),
    ) as fleet:
        (east,) = fleet.clusters
        east.apply(
            named("DeviceClass", CLASS, {}, everywhere=True),
            named("ResourceClaimTemplate", "two-gpus", {"spec": devices(CLASS, 2)}),
            named("ResourceClaimTemplate", "fpga", {"spec": devices(UNMAPPED, 1)}),
            pods("forgot", 1, resourceClaimTemplateName="fpga"),
        )

        def reported() -> list[Document]:
            found = east.plane.api.get(
                "/api/v1/events", fieldSelector="reason=CapacityUnsupported"
            )["items"]
            return [one for one in found if one["involvedObject"]["name"].startswith("forgot-")]

        eventually(reported, "the owner of the Pod reads which class to map")
        (event,) = reported()
        assert f"DeviceClass {UNMAPPED}, which is not mapped" in event["message"]
        assert f"--device-class-mappings {UNMAPPED}=RESOURCE" in event["message"]

        east.apply(pods("train", 1, resourceClaimTemplateName="two-gpus"))
        eventually(lambda: requested(east, "train") == [2], "the template's devices are counted")
        # The claim appears after the Pods that share it.
        east.apply(pods("share", 2, resourceClaimName="shared"))
        east.apply(named("ResourceClaim", "shared", devices(CLASS, 2)))
        eventually(lambda: requested(east, "share") == [0, 2], "a shared claim is counted once")

        eventually(lambda: with_devices(east), "a node with devices is brought")
        (node,) = with_devices(east)
        east.apply(published(node))
        east.until_running(1, "train")
        east.until_running(2, "share")
        assert with_devices(east) == [node]
        assert requested(east, "forgot") == []
