"""The three kinds of our own group, bigfleet.lucy.sh/v1alpha1, as the CRDs in api/crd define them.

CapacityRequests are read by each caller as the fields that it needs, so here they are metadata
alone. What the values mean is left to the callers.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from bigfleet.kube.objects import Meta, Object, Partial, Resource

GROUP: Final = "bigfleet.lucy.sh"
VERSION: Final = "v1alpha1"

PROFILE_LABEL: Final = f"{GROUP}/profile"
"""Of UpcomingNodes and AvailableCapacities: the fingerprint of the profile that they are for."""
GROUP_ANNOTATION: Final = f"{GROUP}/group"
"""Of UpcomingNodes: the gang that the machine was taken for."""

Quantity = str | int
"""A quantity as people write it: 4, "500m", "16Gi"."""


class TaintSpec(Partial, frozen=True, kw_only=True):
    """A taint of a node."""

    key: str
    effect: str
    value: str = ""


class UpcomingNodeSpec(Partial, frozen=True, kw_only=True):
    """What the node will look like."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)
    resources: dict[str, Quantity] = msgspec.field(default_factory=dict)
    taints: tuple[TaintSpec, ...] = ()


class NodeRef(Partial, frozen=True, kw_only=True):
    """The node that a machine became."""

    name: str
    uid: str = ""


class UpcomingNodeStatus(Partial, frozen=True, kw_only=True):
    """How far the machine is."""

    phase: str = ""
    node_ref: NodeRef | None = None
    provider_id: str = msgspec.field(name="providerID", default="")
    provisioning_start_time: datetime | None = None
    last_error: str = ""


class UpcomingNode(Partial, frozen=True, kw_only=True):
    """A machine on its way into the cluster, in it, or on its way out."""

    metadata: Meta
    spec: UpcomingNodeSpec = UpcomingNodeSpec()
    status: UpcomingNodeStatus = UpcomingNodeStatus()


class AvailableCapacity(Partial, frozen=True, kw_only=True):
    """Advice on what the fleet could still give."""

    metadata: Meta


CAPACITY_REQUESTS: Final = Resource(GROUP, VERSION, "capacityrequests", "CapacityRequest", Object)
UPCOMING_NODES: Final = Resource(
    GROUP, VERSION, "upcomingnodes", "UpcomingNode", UpcomingNode, namespaced=False
)
AVAILABLE_CAPACITIES: Final = Resource(
    GROUP, VERSION, "availablecapacities", "AvailableCapacity", AvailableCapacity, namespaced=False
)
