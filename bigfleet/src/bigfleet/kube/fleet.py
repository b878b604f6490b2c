"""The three kinds of our own group, bigfleet.lucy.sh/v1alpha1, as the CRDs in api/crd define them.

Complete enough for the operator and the pod controller; a caller that needs less reads a kind as
a smaller struct. What the values mean is left to them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from bigfleet.kube.objects import Meta, Partial, Resource

GROUP: Final = "bigfleet.lucy.sh"
VERSION: Final = "v1alpha1"

PROFILE_LABEL: Final = f"{GROUP}/profile"
"""Of UpcomingNodes and AvailableCapacities: the fingerprint of the profile that they are for."""
GROUP_ANNOTATION: Final = f"{GROUP}/group"
"""Of UpcomingNodes: the gang that the machine was taken for."""

Quantity = str | int
"""A quantity as people write it: 4, "500m", "16Gi"."""


class RequirementSpec(Partial, frozen=True, kw_only=True):
    """One condition on a node's label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class SpreadSpec(Partial, frozen=True, kw_only=True):
    """How units spread over the values of a label."""

    topology_key: str
    max_skew: int
    when_unsatisfiable: str


class LabelSelector(Partial, frozen=True, kw_only=True):
    """Which units belong to a group."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[RequirementSpec, ...] = ()


class CoLocation(Partial, frozen=True, kw_only=True):
    """Which units share one value of a label."""

    topology_key: str
    label_selector: LabelSelector | None = None


class CapacityRequestSpec(Partial, frozen=True, kw_only=True):
    """What is wanted."""

    resources: dict[str, Quantity]
    priority: int
    requirements: tuple[RequirementSpec, ...] = ()
    interruption_penalty: Quantity | None = None
    reclamation_penalty: Quantity | None = None
    topology_spread: tuple[SpreadSpec, ...] = ()
    co_location: CoLocation | None = None


class Condition(Partial, frozen=True, kw_only=True):
    """A condition as all of Kubernetes writes them."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int = 0


class NeedRef(Partial, frozen=True, kw_only=True):
    """The row of demand that a request is added up in."""

    profile: str
    group: str = ""


class CapacityRequestStatus(Partial, frozen=True, kw_only=True):
    """How far it is: Pending or Acknowledged."""

    phase: str = ""
    acknowledged_at: datetime | None = None
    need: NeedRef | None = None
    conditions: tuple[Condition, ...] = ()


class CapacityRequest(Partial, frozen=True, kw_only=True):
    """Capacity that the cluster wants."""

    metadata: Meta
    spec: CapacityRequestSpec
    status: CapacityRequestStatus = CapacityRequestStatus()


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


class AvailableCapacitySpec(Partial, frozen=True, kw_only=True):
    """How much of a kind of capacity there is, and its price an hour."""

    availability: str
    requirements: tuple[RequirementSpec, ...] = ()
    resources: dict[str, Quantity] = msgspec.field(default_factory=dict)
    available_count: int = 0
    cost: Quantity = 0


class AvailableCapacity(Partial, frozen=True, kw_only=True):
    """Advice on what the fleet could still give."""

    metadata: Meta
    spec: AvailableCapacitySpec


CAPACITY_REQUESTS: Final = Resource(
    GROUP, VERSION, "capacityrequests", "CapacityRequest", CapacityRequest
)
UPCOMING_NODES: Final = Resource(
    GROUP, VERSION, "upcomingnodes", "UpcomingNode", UpcomingNode, namespaced=False
)
AVAILABLE_CAPACITIES: Final = Resource(
    GROUP, VERSION, "availablecapacities", "AvailableCapacity", AvailableCapacity, namespaced=False
)
