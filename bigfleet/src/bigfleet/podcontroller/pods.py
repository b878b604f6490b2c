"""The fields of Pods, claims, Nodes, UpcomingNodes and CapacityRequests that are read here.

Partial structs: everything else of an object is passed over when it is decoded, which is what
makes a list of many thousand Pods cheap.
"""

from __future__ import annotations

import msgspec

from bigfleet.kube.podspec import Container, ContainerResources, ContainerStatus, PodCondition


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    pass


class PodOwner(_Part, frozen=True):
    """An owner of an object."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class PodMetadata(_Part, frozen=True):
    """Metadata of any object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[PodOwner, ...] = ()


class Expression(_Part, frozen=True):
    """A requirement of a selector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = ()


class NodeTerm(_Part, frozen=True):
    """One of several OR-ed terms of a node affinity."""

    match_expressions: tuple[Expression, ...] | None = ()
    match_fields: tuple[Expression, ...] | None = ()


class NodeSelector(_Part, frozen=True):
    """Terms of which one has to hold."""

    node_selector_terms: tuple[NodeTerm, ...] = ()


class RequiredNodeAffinity(_Part, frozen=True):
    """Only what is required is read."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodSelector(_Part, frozen=True):
    """Which Pods."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Expression, ...] | None = None


class PodAffinityTerm(_Part, frozen=True):
    """Pods to be near to."""

    topology_key: str = ""
    label_selector: PodSelector | None = None
    namespaces: tuple[str, ...] | None = None


class PodAffinity(_Part, frozen=True):
    """Only what is required is read."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None


class PodAffinities(_Part, frozen=True):
    """Where a Pod wants to be."""

    node_affinity: RequiredNodeAffinity | None = None
    pod_affinity: PodAffinity | None = None


class PodSpread(_Part, frozen=True):
    """How Pods are spread."""

    topology_key: str = ""
    max_skew: int = 1
    when_unsatisfiable: str = "DoNotSchedule"


class Gate(_Part, frozen=True):
    """Something that has to happen before a Pod is scheduled."""

    name: str = ""


class PodToleration(_Part, frozen=True):
    """A taint that a Pod bears with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PodResourceClaim(_Part, frozen=True):
    """Devices of a Pod: a claim, or a template of which the Pod gets a claim of its own."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodClaimStatus(_Part, frozen=True):
    """The claim that was made of a template."""

    name: str = ""
    resource_claim_name: str = ""


class DeviceCount(_Part, frozen=True):
    """Devices of one class: an exact request, or one of several alternatives."""

    device_class_name: str = ""
    allocation_mode: str = ""
    count: int = 1
    admin_access: bool = False


class DeviceRequest(_Part, frozen=True):
    """One request of a claim: exactly one of the two fields is set."""

    name: str = ""
    exactly: DeviceCount | None = None
    first_available: tuple[DeviceCount, ...] = ()


class RequestedDevices(_Part, frozen=True):
    """All requests of a claim."""

    requests: tuple[DeviceRequest, ...] = ()


class ClaimSpec(_Part, frozen=True):
    """What a claim asks for."""

    devices: RequestedDevices = RequestedDevices()


class ResourceClaim(_Part, frozen=True):
    """A ResourceClaim."""

    metadata: PodMetadata = PodMetadata()
    spec: ClaimSpec = ClaimSpec()


class ClaimTemplateSpec(_Part, frozen=True):
    """What each claim of a template gets."""

    spec: ClaimSpec = ClaimSpec()


class ResourceClaimTemplate(_Part, frozen=True):
    """A ResourceClaimTemplate."""

    metadata: PodMetadata = PodMetadata()
    spec: ClaimTemplateSpec = ClaimTemplateSpec()


class PodSpec(_Part, frozen=True):
    """What a Pod wants."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str] | None = None
    resources: ContainerResources | None = None
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: PodAffinities | None = None
    topology_spread_constraints: tuple[PodSpread, ...] | None = None
    priority: int | None = None
    priority_class_name: str = ""
    scheduling_gates: tuple[Gate, ...] | None = None
    tolerations: tuple[PodToleration, ...] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None


class PodStatus(_Part, frozen=True):
    """How a Pod is."""

    phase: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()
    conditions: tuple[PodCondition, ...] = ()


class DemandPod(_Part, frozen=True):
    """A Pod."""

    metadata: PodMetadata = PodMetadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return (self.metadata.namespace, self.metadata.name)


class WatchedNodeSpec(_Part, frozen=True):
    """What a Node is."""

    provider_id: str = msgspec.field(default="", name="providerID")


class WatchedNodeStatus(_Part, frozen=True):
    """How a Node is."""

    conditions: tuple[PodCondition, ...] = ()


class WatchedNode(_Part, frozen=True):
    """A Node."""

    metadata: PodMetadata = PodMetadata()
    spec: WatchedNodeSpec = WatchedNodeSpec()
    status: WatchedNodeStatus = WatchedNodeStatus()


class ArrivingNodeSpec(_Part, frozen=True):
    """What the node will look like."""

    labels: dict[str, str] | None = None


class ArrivingNodeStatus(_Part, frozen=True):
    """Which node a machine has become."""

    phase: str = ""
    node_ref: dict[str, str] | None = None
    provider_id: str = msgspec.field(default="", name="providerID")
    provisioning_start_time: str = ""
    last_error: str = ""


class ArrivingNode(_Part, frozen=True):
    """A machine that BigFleet brings."""

    metadata: PodMetadata = PodMetadata()
    spec: ArrivingNodeSpec = ArrivingNodeSpec()
    status: ArrivingNodeStatus = ArrivingNodeStatus()


class RequestSpec(_Part, frozen=True):
    """What may change in a CapacityRequest."""

    resources: dict[str, str | int] | None = None
    priority: int = 0
    tolerations: tuple[PodToleration, ...] | None = None
    """None where it was written by an earlier release."""


class RequestNeed(_Part, frozen=True):
    """A row of demand: the profile of its requests, and the gang that they belong to."""

    profile: str = ""
    group: str = ""


class RequestCondition(_Part, frozen=True):
    """A condition of a CapacityRequest."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class RequestStatus(_Part, frozen=True):
    """How far a CapacityRequest is."""

    phase: str = ""
    need: RequestNeed | None = None
    conditions: tuple[RequestCondition, ...] | None = ()


class PodRequest(_Part, frozen=True):
    """A CapacityRequest."""

    metadata: PodMetadata = PodMetadata()
    spec: RequestSpec = RequestSpec()
    status: RequestStatus = RequestStatus()
