"""What the operator watches, and whether all of it is there.

CapacityRequests are not kept as objects: tens of thousands of them are a few rows. They are fed to
the roll-up as they are seen, and only their names are remembered, so that a new list shows which of
them went while no watch ran.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from bigfleet.kube import BadObject, Change, ChangeKind, Informer, KubeClient
from bigfleet.kube.fleet import AVAILABLE_CAPACITIES, CAPACITY_REQUESTS, UPCOMING_NODES
from bigfleet.kube.list_watch import ListWatch
from bigfleet.operator.demand.requests import CapacityRequest
from bigfleet.operator.nodes.objects import READ_DAEMON_SETS, READ_NODES, READ_PODS
from bigfleet.operator.operator import ClusterOperator

READ_REQUESTS: Final = CAPACITY_REQUESTS.read_as(CapacityRequest)
_POD_FIELDS: Final = "spec.nodeName!="
"""Pods without a node are the pod controller's business."""


class RequestSink:
    """Feeds the roll-up."""

    def __init__(self, operator: ClusterOperator) -> None:
        self._operator = operator
        self._unseen: set[tuple[str, str]] | None = None
        self.synced = asyncio.Event()

    def begin(self) -> None:
        """A complete list follows."""
        self._unseen = set(self._operator.rollups.keys())

    def listed(self, items: Sequence[CapacityRequest], bad: Sequence[BadObject]) -> None:
        """A page of it."""
        for item in items:
            self.seen(item)
        for one in bad:
            self.bad(one)

    def end(self) -> None:
        for key in self._unseen or ():
            self._operator.rollups.remove(key)
        self._unseen = None
        self.synced.set()

    def seen(self, item: CapacityRequest) -> None:
        """Added or changed."""
        meta = item.metadata
        if self._unseen is not None:
            self._unseen.discard((meta.namespace, meta.name))
        self._operator.request_seen(Change(ChangeKind.CHANGED, "", None, item))

    def gone(self, item: CapacityRequest) -> None:
        """Deleted."""
        self._operator.request_seen(Change(ChangeKind.DELETED, "", item, None))

    def bad(self, bad: BadObject) -> None:
        """It cannot be read: it is left out, like any other that cannot be carried."""
        self._operator.unreadable(bad)


class OperatorWatches:
    """All watches of one operator."""

    def __init__(self, client: KubeClient, operator: ClusterOperator) -> None:
        self._sink = RequestSink(operator)
        self._requests = ListWatch(client, READ_REQUESTS, self._sink)
        self._nodes = Informer(client, READ_NODES)
        self._pods = Informer(client, READ_PODS, fields=_POD_FIELDS)
        self._upcoming = Informer(client, UPCOMING_NODES)
        self._available = Informer(client, AVAILABLE_CAPACITIES)
        self._daemon_sets = Informer(client, READ_DAEMON_SETS)
        self._upcoming.on_change(operator.machines.seen)
        self._available.on_change(operator.available.seen)
        self._nodes.on_change(operator.book.node_seen)
        self._pods.on_change(operator.book.pod_seen)
        self._daemon_sets.on_change(operator.daemon_set_seen)

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._requests.run())
            for informer in (self._nodes, self._pods, self._upcoming):
                group.create_task(informer.run())
            group.create_task(self._available.run())
            group.create_task(self._daemon_sets.run())

    async def wait_synced(self) -> None:
        """Until everything has been listed once: half of a cluster's demand is worse than none."""
        await self._sink.synced.wait()
        await self._nodes.wait_synced()
        await self._pods.wait_synced()
        await self._upcoming.wait_synced()
        await self._available.wait_synced()
        await self._daemon_sets.wait_synced()

    def not_synced(self) -> str:
        """What is not there yet, for people; empty when everything is."""
        waiting = [] if self._sink.synced.is_set() else [f"{self._requests.trouble}"]
        for informer in (self._nodes, self._pods, self._upcoming):
            if not informer.synced:
                waiting.append(f"{informer.trouble}")
        for synced, trouble in (
            (self._available.synced, self._available.trouble),
            (self._daemon_sets.synced, self._daemon_sets.trouble),
        ):
            if not synced:
                waiting.append(f"{trouble}")
        return waiting[0] if waiting else ""
