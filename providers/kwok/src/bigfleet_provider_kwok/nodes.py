"""The Node of a host, and which pods have to leave it.

Pure functions from values to API objects. A node shows what the shard was told about the machine:
the same labels and allocatable resources, and the taints of its offering; so a pod that the engine
counted on fits. kwok does the rest for nodes with its annotation: heartbeats, conditions, pods.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bigfleet_provider_kwok.join import Join, parse_taint
from bigfleet_providerkit import Host
from bigfleet_providerkit.machines.record import Shape
from bigfleet_providerkit.machines.state import CapacityType

Body = dict[str, Any]
PROVIDER_LABEL = "bigfleet.lucy.sh/provider"
CAPACITY_TYPE_LABEL = "bigfleet.lucy.sh/capacity-type"
MACHINE_ANNOTATION = "bigfleet.lucy.sh/machine-id"
KWOK = {"kwok.x-k8s.io/node": "fake"}
MIRROR = "kubernetes.io/config.mirror"
CAPACITY_WORDS = {
    CapacityType.ON_DEMAND: "on-demand",
    CapacityType.SPOT: "spot",
    CapacityType.RESERVED: "reserved",
    CapacityType.BARE_METAL: "bare-metal",
}


def node_of(host: Host, label: str, shape: Shape, join: Join, taints: Sequence[str]) -> Body:
    """The Node of a host, as a kubelet would register it."""
    name = host.ref
    resources = dict(shape.allocatable)
    node: Body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "type": "kwok",
                **shape.labels,
                "kubernetes.io/hostname": name,
                "node.kubernetes.io/instance-type": shape.instance_type,
                "topology.kubernetes.io/zone": shape.zone,
                CAPACITY_TYPE_LABEL: CAPACITY_WORDS[shape.capacity_type],
                PROVIDER_LABEL: label,
                **join.labels,
            },
            "annotations": {**KWOK, MACHINE_ANNOTATION: host.machine_id},
        },
        "spec": {"providerID": provider_id(label, name)},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "nodeInfo": {
                "architecture": shape.labels.get("kubernetes.io/arch", "amd64"),
                "operatingSystem": "linux",
                "kubeletVersion": "kwok",
                **dict.fromkeys(
                    (
                        "machineID", "systemUUID", "bootID", "kernelVersion", "osImage",
                        "containerRuntimeVersion", "kubeProxyVersion",
                    ),
                    "",
                ),
            },
        },
    }  # fmt: skip
    if taints or join.taints:
        node["spec"]["taints"] = [
            parse_taint(text) for text in dict.fromkeys((*taints, *join.taints))
        ]
    return node


def provider_id(label: str, ref: str) -> str:
    """By this everyone finds the machine of a node: what follows the last slash is the host."""
    return f"kwok://{label}/{ref}"


def is_ready(node: Mapping[str, Any]) -> bool:
    """Whether kwok has made the node Ready."""
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def have_to_leave(pods: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The pods a drain waits for: neither mirrors nor a DaemonSet's nor ended ones."""
    return [pod for pod in pods if not (_is_mirror(pod) or _of_daemon_set(pod) or _has_ended(pod))]


def eviction_grace(pod: Mapping[str, Any], grace: int) -> int | None:
    """A shorter grace than the pod's own, where the drain has no more time; None keeps its own."""
    own = (pod.get("spec") or {}).get("terminationGracePeriodSeconds", 30)
    return grace if isinstance(own, int) and grace < own else None


def _is_mirror(pod: Mapping[str, Any]) -> bool:
    return MIRROR in (pod["metadata"].get("annotations") or {})


def _of_daemon_set(pod: Mapping[str, Any]) -> bool:
    owners = pod["metadata"].get("ownerReferences") or []
    return any(owner.get("kind") == "DaemonSet" for owner in owners)


def _has_ended(pod: Mapping[str, Any]) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
