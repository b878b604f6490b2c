"""Whether a Pod is demand.

Every Pod is, not only one that waits: what is reclaimed follows from total demand. Left out are
Pods that would run anyway or never again, those their owners leave out, and those on nodes that
were there without BigFleet.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from bigfleet.podcontroller.pods import DemandPod

IGNORE: Final = "bigfleet.lucy.sh/ignore"
MIRROR: Final = "kubernetes.io/config.mirror"
SOURCE: Final = "kubernetes.io/config.source"
_ENDED: Final = frozenset({"Succeeded", "Failed"})


class PodRole(StrEnum):
    """What a Pod is to us. Only the first asks for capacity."""

    DEMAND = "demand"
    TERMINAL = "it has ended"
    LEAVING = "it is being deleted"
    SKIPPED = "every node runs it by itself"
    IGNORED = "its owner leaves it out"
    GATED = "it is held by a scheduling gate"
    FOREIGN = "it runs on a node that BigFleet did not bring"


def verdict(pod: DemandPod, *, on_foreign_node: bool) -> PodRole:
    """What a Pod is; `on_foreign_node` when it is bound to a node that BigFleet did not bring."""
    annotations = pod.metadata.annotations or {}
    labels = pod.metadata.labels or {}
    if pod.status.phase in _ENDED:
        return PodRole.TERMINAL
    if pod.metadata.deletion_timestamp is not None:
        return PodRole.LEAVING
    if MIRROR in annotations or annotations.get(SOURCE, "api") != "api":
        return PodRole.SKIPPED
    if any(o.controller and o.kind in ("DaemonSet", "Node") for o in pod.metadata.owner_references):
        return PodRole.SKIPPED
    if "true" in (annotations.get(IGNORE), labels.get(IGNORE)):
        return PodRole.IGNORED
    if pod.spec.scheduling_gates and not pod.spec.node_name:
        return PodRole.GATED
    return PodRole.FOREIGN if on_foreign_node else PodRole.DEMAND
