"""The fields of Nodes, Pods and DaemonSets that the operator reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from bigfleet.kube.objects import DAEMON_SETS, NODES, PODS, Partial
from bigfleet.kube.podspec import Container, ContainerResources, PodCondition, pod_resources
from bigfleet.model import QuantityError, add

MIRROR: Final = "kubernetes.io/config.mirror"
_ENDED: Final = frozenset({"Succeeded", "Failed"})


class Meta(Partial, frozen=True, kw_only=True):
    """Metadata of a Node."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class Taint(Partial, frozen=True, kw_only=True):
    """A taint of a Node."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(Partial, frozen=True, kw_only=True):
    """What a Node is."""

    provider_id: str = msgspec.field(default="", name="providerID")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Partial, frozen=True, kw_only=True):
    """How a Node is."""

    conditions: tuple[PodCondition, ...] = ()


class Node(Partial, frozen=True, kw_only=True):
    """A Node."""

    metadata: Meta = Meta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Owner(Partial, frozen=True, kw_only=True):
    """An owner of a Pod."""

    kind: str = ""
    controller: bool = False


class PodMeta(Partial, frozen=True, kw_only=True):
    """Metadata of a Pod."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[Owner, ...] = ()


class PodPlace(Partial, frozen=True, kw_only=True):
    """Where a Pod is."""

    node_name: str = ""


class PodState(Partial, frozen=True, kw_only=True):
    """Whether a Pod has ended."""

    phase: str = ""


class Pod(Partial, frozen=True, kw_only=True):
    """A Pod."""

    metadata: PodMeta = PodMeta()
    spec: PodPlace = PodPlace()
    status: PodState = PodState()

    @property
    def is_ended(self) -> bool:
        """Whether it runs no more."""
        return self.status.phase in _ENDED

    @property
    def stays_with_node(self) -> bool:
        """Whether it is never evicted: its node runs it, or every node does."""
        return MIRROR in self.metadata.annotations or any(
            owner.controller and owner.kind in ("DaemonSet", "Node")
            for owner in self.metadata.owner_references
        )


class NodeAffinity(Partial, frozen=True, kw_only=True):
    """Only whether something is required."""

    required_during_scheduling_ignored_during_execution: dict[str, object] | None = None


class Affinity(Partial, frozen=True, kw_only=True):
    """Where Pods want to be."""

    node_affinity: NodeAffinity | None = None


class TemplateSpec(Partial, frozen=True, kw_only=True):
    """What each Pod of a DaemonSet asks for."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str] | None = None
    resources: ContainerResources | None = None
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None


class Template(Partial, frozen=True, kw_only=True):
    """The Pods of a DaemonSet."""

    spec: TemplateSpec = TemplateSpec()


class DaemonSetSpec(Partial, frozen=True, kw_only=True):
    """What a DaemonSet is."""

    template: Template = Template()


class DaemonSet(Partial, frozen=True, kw_only=True):
    """A DaemonSet."""

    metadata: Meta = Meta()
    spec: DaemonSetSpec = DaemonSetSpec()


READ_NODES: Final = NODES.read_as(Node)
READ_PODS: Final = PODS.read_as(Pod)
READ_DAEMON_SETS: Final = DAEMON_SETS.read_as(DaemonSet)


_EVERYWHERE: Final = frozenset({"kubernetes.io/os", "beta.kubernetes.io/os"})


def runs_everywhere(daemon_set: DaemonSet) -> bool:
    """Whether its Pods are on every node."""
    spec = daemon_set.spec.template.spec
    if not _EVERYWHERE.issuperset(spec.node_selector):
        return False
    affinity = spec.affinity and spec.affinity.node_affinity
    return not (affinity and affinity.required_during_scheduling_ignored_during_execution)


def node_overhead(daemon_sets: Iterable[DaemonSet]) -> dict[str, int]:
    """Milli-units per resource that DaemonSets take on every node; empty where there is nothing.

    A DaemonSet that chooses its nodes, other than by operating system, is left out: better to bring
    a little too much than to believe that every machine loses what only some do.
    """
    total: dict[str, int] = {}
    for daemon_set in daemon_sets:
        if not runs_everywhere(daemon_set):
            continue
        try:
            total = add(total, pod_resources(daemon_set.spec.template.spec))
        except QuantityError:
            # The API server has checked it; what it let pass is not worth losing the rest for.
            continue
    return total
