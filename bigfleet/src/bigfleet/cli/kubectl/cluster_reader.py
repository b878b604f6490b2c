"""Reads what BigFleet keeps in a cluster, with the rights of the person who asks.

A user of a cluster often may not list its nodes. What may not be read is noted once and left out;
only the object that a command is about has to be readable.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from bigfleet.cli.errors import FailureError
from bigfleet.cli.kubectl.kube_objects import (
    DEPLOYMENT,
    EVENT,
    NODE,
    POD,
    REQUEST,
    UPCOMING,
    Event,
    FullNode,
)
from bigfleet.kube import (
    Change,
    ChangeKind,
    ForbiddenError,
    KubeClient,
    NotFoundError,
    Resource,
    key_of,
)
from bigfleet.kube.objects import ObjectLike
from bigfleet.podcontroller.arrivals import Arrivals, ComingNodes
from bigfleet.podcontroller.pods import ArrivingNode, DemandPod, PodRequest, RequestNeed

T = TypeVar("T")
ObjectT = TypeVar("ObjectT", bound=ObjectLike)

OPERATOR: Final = "app.kubernetes.io/name=bigfleet-operator"
POD_CONTROLLER: Final = "app.kubernetes.io/name=bigfleet-unschedulable-pod-controller"
OWNED_BY: Final = "bigfleet.lucy.sh/owned-by-pod"


@dataclass(frozen=True, slots=True)
class OperatorDeployment:
    """The operator of a cluster, as its chart installs it."""

    name: str
    namespace: str
    cluster_id: str
    shard: str
    replicas: int
    ready: int


class ClusterReader:
    """One cluster, read for one command."""

    def __init__(self, client: KubeClient, now_unix_s: float) -> None:
        self.client, self.now_unix_s = client, now_unix_s
        self.notes: list[str] = []
        """What could not be read, in words."""

    async def pod(self, name: str, namespace: str) -> DemandPod | None:
        """A Pod; None where there is none of that name."""
        return await self._get(POD, name, namespace)

    async def node(self, name: str) -> FullNode | None:
        """A Node; None where there is none, or this user may not read it."""
        try:
            return await self._get(NODE, name)
        except ForbiddenError:
            self._note("you may not read nodes")
            return None

    async def requests(self, namespace: str = "", labels: str = "") -> list[PodRequest]:
        """CapacityRequests, of all namespaces where none is named."""
        try:
            return await self.client.list_all(REQUEST, namespace, labels=labels)
        except NotFoundError as error:
            raise FailureError(
                "this cluster has no CapacityRequests: BigFleet's CRDs are not installed; install "
                "the chart bigfleet-operator, or `kubectl apply -f api/crd`"
            ) from error

    async def every_request(self) -> list[PodRequest]:
        """CapacityRequests of all namespaces, or none where this user may not list them."""
        try:
            return await self.requests()
        except ForbiddenError:
            self._note("you may not list the capacityrequests of all namespaces")
            return []

    async def request_of(self, pod: DemandPod) -> PodRequest | None:
        """The CapacityRequest of a Pod."""
        labels = f"{OWNED_BY}={pod.metadata.uid}"
        found = await self.requests(pod.metadata.namespace, labels)
        return found[0] if found else None

    async def upcoming(self) -> list[ArrivingNode]:
        """Machines on their way in, in the cluster and on their way out."""
        return await self._list(UPCOMING)

    async def nodes(self) -> list[FullNode]:
        """All Nodes."""
        return await self._list(NODE)

    async def pods_on(self, node: str) -> list[DemandPod]:
        """Pods that run on a Node."""
        return await self._list(POD, fields=f"spec.nodeName={node}")

    async def events_on(self, uid: str, namespace: str) -> list[Event]:
        """Events on one object, oldest first."""
        fields = f"involvedObject.uid={uid}"
        found = await self._list(EVENT, namespace, fields=fields)
        return sorted(found, key=lambda event: event.at)

    async def operator(self) -> OperatorDeployment | None:
        """The operator's Deployment, where a chart brought it and this user may see it."""
        found = await self.deployments(OPERATOR)
        return operator_of(found[0]) if found else None

    async def deployments(self, labels: str) -> list[dict[str, Any]]:
        """Deployments with these labels."""
        return await self._list(DEPLOYMENT, labels=labels)

    async def coming(self, upcoming: Iterable[ArrivingNode]) -> ComingNodes:
        """What is on its way, and how long nodes of a type take."""
        found = ComingNodes(lambda: self.now_unix_s)
        for machine in upcoming:
            found.machine_seen(_added(machine))
        for node in await self.nodes():
            found.node_seen(_added(node))
        return found

    async def arrivals(
        self, need: RequestNeed, upcoming: Iterable[ArrivingNode]
    ) -> Arrivals | None:
        """The nodes on their way for one need."""
        return (await self.coming(upcoming)).of(need)

    async def _get(self, resource: Resource[T], name: str, namespace: str = "") -> T | None:
        try:
            return await self.client.get(resource, name, namespace)
        except NotFoundError:
            return None

    async def _list(
        self, resource: Resource[T], namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> list[T]:
        try:
            return await self.client.list_all(resource, namespace, labels=labels, fields=fields)
        except ForbiddenError:
            self._note(f"you may not list {resource.plural}")
        except NotFoundError:
            self._note(f"this cluster has no {resource.plural}")
        return []

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def operator_of(deployment: dict[str, Any]) -> OperatorDeployment:
    """What a Deployment says of the operator that it runs."""
    containers = deployment["spec"]["template"]["spec"]["containers"]
    arguments = [str(one) for each in containers for one in each.get("args", ())]
    flags = dict(one.removeprefix("--").split("=", 1) for one in arguments if "=" in one)
    return OperatorDeployment(
        name=deployment["metadata"]["name"],
        namespace=deployment["metadata"]["namespace"],
        cluster_id=flags.get("cluster-id", ""),
        shard=flags.get("shard-addr", ""),
        replicas=int(deployment["spec"].get("replicas", 1)),
        ready=int(deployment.get("status", {}).get("readyReplicas", 0)),
    )


def _added(found: ObjectT) -> Change[ObjectT]:
    return Change(ChangeKind.ADDED, key_of(found), None, found)
