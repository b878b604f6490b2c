"""The fields of Nodes, Deployments and Events that the commands read; the rest are those of the
pod controller."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from bigfleet.kube.fleet import CAPACITY_REQUESTS, UPCOMING_NODES
from bigfleet.kube.objects import DEPLOYMENTS, EVENTS, NODES, PODS, Resource
from bigfleet.podcontroller import pods


class NodeTaint(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A taint of a Node."""

    key: str = ""
    effect: str = ""


class FullNodeSpec(pods.WatchedNodeSpec, frozen=True):
    """What a Node is, and whether Pods may come."""

    unschedulable: bool = False
    taints: tuple[NodeTaint, ...] | None = ()


class FullNode(pods.WatchedNode, frozen=True):
    """A Node with its taints."""

    spec: FullNodeSpec = FullNodeSpec()


class Event(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """An Event on an object."""

    reason: str = ""
    message: str = ""
    last_timestamp: str | None = ""
    event_time: str | None = ""

    @property
    def at(self) -> str:
        """When it was written last, as RFC 3339."""
        return self.last_timestamp or self.event_time or ""


POD: Final = PODS.read_as(pods.DemandPod)
NODE: Final = NODES.read_as(FullNode)
REQUEST: Final = CAPACITY_REQUESTS.read_as(pods.PodRequest)
UPCOMING: Final = UPCOMING_NODES.read_as(pods.ArrivingNode)
EVENT: Final = EVENTS.read_as(Event)
DEPLOYMENT: Final[Resource[dict[str, Any]]] = DEPLOYMENTS.read_as(dict)
