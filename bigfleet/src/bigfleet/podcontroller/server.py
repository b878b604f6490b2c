"""A pod controller as a process: lease, watches, probes, from start to orderly stop.

Of two replicas one writes; the other watches and is ready to take over. Ready is who has seen all
Pods, requests and nodes once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from bigfleet.kube import (
    PATIENT,
    Change,
    EventRecorder,
    ForbiddenError,
    Informer,
    KubeClient,
    KubeError,
    LeaderElection,
    NotFoundError,
    Readiness,
    Resource,
    load,
)
from bigfleet.kube.fleet import UPCOMING_NODES
from bigfleet.kube.objects import NODES, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from bigfleet.observe.pages import component_routes, serve_pages
from bigfleet.observe.podcontroller import PodControllerMetrics
from bigfleet.podcontroller.arrivals import ComingNodes
from bigfleet.podcontroller.controller import READ_REQUESTS, PodController
from bigfleet.podcontroller.notices import PodNotices
from bigfleet.podcontroller.ownership import NodeOwnership
from bigfleet.podcontroller.penalties import read_defaults
from bigfleet.podcontroller.pods import (
    ArrivingNode,
    DemandPod,
    ResourceClaim,
    ResourceClaimTemplate,
    WatchedNode,
)
from bigfleet.podcontroller.request import OWNED_BY_POD
from bigfleet.podcontroller.resource_claims import ClaimBook, device_classes
from bigfleet.podcontroller.settings import PodControllerSettings
from bigfleet.podcontroller.stuck import StuckPods
from bigfleet.wire.backoff import Backoff

COMPONENT: Final = "bigfleet-pod-controller"
_URGENT_QPS: Final = 20.0
_URGENT_BURST: Final = 20
_EVENT_QPS: Final = 50.0
_EVENT_BURST: Final = 100
_EVENT_QUEUE: Final = 10_000
ABSENT: Final = "the API server has no resource.k8s.io/v1, which Kubernetes 1.34 and later have"
FORBIDDEN: Final = (
    "the pod controller may not read them: allow get, list and watch of resourceclaims and "
    "resourceclaimtemplates in resource.k8s.io, as its chart does"
)
_UNREACHABLE_S: Final = (0.2, 30.0)
_UNAVAILABLE_S: Final = (30.0, 300.0)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServedController:
    """A pod controller that is being served."""

    controller: PodController
    metrics_address: str


async def serve(
    settings: PodControllerSettings,
    stop: asyncio.Event,
    version: str,
    on_running: Callable[[ServedController], None] = lambda _running: None,
) -> None:
    """Serve a pod controller until told to stop."""
    metrics = PodControllerMetrics(version=version)
    defaults = read_defaults(settings.priority_class_defaults)
    config = load(settings.kubeconfig or None)
    async with (
        KubeClient.connect(
            config, qps=settings.qps, burst=settings.burst, user_agent=COMPONENT, observer=metrics
        ) as client,
        # The lease is renewed on a client of its own: it must not wait behind a thousand Pods.
        KubeClient.connect(
            config, qps=_URGENT_QPS, burst=_URGENT_BURST, user_agent=COMPONENT, observer=metrics
        ) as urgent,
        # Events may come late: a thousand Pods' requests must not wait behind as many Events.
        KubeClient.connect(
            config, qps=_EVENT_QPS, burst=_EVENT_BURST, user_agent=COMPONENT, observer=metrics
        ) as unhurried,
    ):
        events = EventRecorder(unhurried, COMPONENT, instance=settings.replica, queue=_EVENT_QUEUE)
        ownership = NodeOwnership(time.time)
        claims = ClaimBook(device_classes(settings.device_class_mappings))
        controller = PodController(
            client,
            PodNotices(events, time.time),
            ownership,
            metrics,
            Random(),
            defaults,
            StuckPods(settings.ask_again_after, time.time),
            ComingNodes(time.time),
            claims,
            adopts=settings.adopts,
            workers=settings.workers,
        )
        watches = ControllerWatches(client, controller, ownership, claims)
        election = LeaderElection(
            urgent,
            settings.lease_name,
            settings.replica,
            namespace=settings.lease_namespace,
            times=PATIENT,
        )
        readiness = Readiness(watches.not_synced)
        routes = component_routes(metrics.registry, readiness.__str__)
        http = serve_pages(settings.metrics_addr, routes)
        _log.info("pod controller started", extra={"adopt_foreign_nodes": settings.adopts})
        on_running(ServedController(controller, "" if http is None else http.address))
        try:
            await _live(controller, watches, election, events, readiness, stop)
        finally:
            if http is not None:
                http.close()


class ClaimWatches:
    """The watches of ResourceClaims and templates, where the API server has them and lets us read
    them: a cluster without them must not keep the controller from following all other Pods."""

    def __init__(self, client: KubeClient, book: ClaimBook) -> None:
        self._client, self._book = client, book
        self._claims = Informer(client, RESOURCE_CLAIMS.read_as(ResourceClaim))
        self._templates = Informer(client, RESOURCE_CLAIM_TEMPLATES.read_as(ResourceClaimTemplate))
        self._claims.on_change(book.claim_seen)
        self._templates.on_change(book.template_seen)
        self._settled = asyncio.Event()
        self._trouble = "it is not known yet whether there are ResourceClaims"

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        await self._wait_available()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._claims.run())
            group.create_task(self._templates.run())
            await self._claims.wait_synced()
            await self._templates.wait_synced()
            self._book.set_unavailable("")
            self._settled.set()

    async def wait_synced(self) -> None:
        """Until everything has been listed once, or it is clear that it cannot be."""
        await self._settled.wait()

    @property
    def synced(self) -> bool:
        """Whether `wait_synced` would return at once."""
        return self._settled.is_set()

    @property
    def trouble(self) -> str | None:
        """What is not there yet, for people."""
        return self._claims.trouble or self._templates.trouble if self.synced else self._trouble

    async def _wait_available(self) -> None:
        chance = self._client.transport.chance
        unreachable = Backoff(*_UNREACHABLE_S, chance)
        unavailable = Backoff(*_UNAVAILABLE_S, chance)
        while True:
            try:
                why = await self._why_unavailable()
            except KubeError as error:
                self._trouble = f"resourceclaims: {error}"
                await self._client.clock.sleep(unreachable.next())
                continue
            if not why:
                return
            if why != self._book.unavailable:
                _log.warning("resource claims of pods are not counted", extra={"reason": why})
            self._book.set_unavailable(why)
            self._settled.set()
            await self._client.clock.sleep(unavailable.next())

    async def _why_unavailable(self) -> str:
        kinds: tuple[Resource[Any], ...] = (RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES)
        try:
            for kind in kinds:
                await self._client.list_page(kind, limit=1)
        except NotFoundError:
            return ABSENT
        except ForbiddenError:
            return FORBIDDEN
        return ""


class ControllerWatches:
    """All watches of one pod controller."""

    def __init__(
        self,
        client: KubeClient,
        controller: PodController,
        ownership: NodeOwnership,
        claims: ClaimBook,
    ) -> None:
        self._claims = ClaimWatches(client, claims)
        self._pods = Informer(client, PODS.read_as(DemandPod))
        self._requests = Informer(client, READ_REQUESTS, labels=OWNED_BY_POD)
        self._nodes = Informer(client, NODES.read_as(WatchedNode))
        self._upcoming = Informer(client, UPCOMING_NODES.read_as(ArrivingNode))
        self._nodes.on_change(lambda change: _node(ownership, change))
        self._nodes.on_change(controller.node_seen)
        self._upcoming.on_change(lambda change: _machine(ownership, change))
        self._upcoming.on_change(controller.machine_seen)
        self._requests.on_change(controller.request_seen)
        self._pods.on_change(controller.pod_seen)

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._claims.run())
            group.create_task(self._upcoming.run())
            group.create_task(self._nodes.run())
            group.create_task(self._requests.run())
            group.create_task(self._pods.run())

    async def wait_synced(self) -> None:
        """Until everything has been listed once."""
        await self._claims.wait_synced()
        await self._upcoming.wait_synced()
        await self._nodes.wait_synced()
        await self._requests.wait_synced()
        await self._pods.wait_synced()

    def not_synced(self) -> str:
        """What is not there yet, for people; empty when everything is."""
        for synced, trouble in (
            (self._pods.synced, self._pods.trouble),
            (self._requests.synced, self._requests.trouble),
            (self._nodes.synced, self._nodes.trouble),
            (self._upcoming.synced, self._upcoming.trouble),
            (self._claims.synced, self._claims.trouble),
        ):
            if not synced:
                return f"watches are not complete: {trouble}"
        return ""


async def _live(
    controller: PodController, watches: ControllerWatches, election: LeaderElection,
    events: EventRecorder, readiness: Readiness, stop: asyncio.Event,
) -> None:  # fmt: skip
    async def lead() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(controller.run())
            group.create_task(events.run())

    async def take_part() -> None:
        await watches.wait_synced()
        await election.run(lead)

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(work) for work in (watches.run(), take_part(), readiness.follow())
        ]
        await stop.wait()
        for task in tasks:
            task.cancel()


def _node(ownership: NodeOwnership, change: Change[WatchedNode]) -> None:
    if change.new is None:
        ownership.drop_node(change.key)
    else:
        ownership.put_node(change.new)


def _machine(ownership: NodeOwnership, change: Change[ArrivingNode]) -> None:
    if change.new is None:
        ownership.drop_machine(change.key)
    else:
        ownership.put_machine(change.new)
