"""Keeps CapacityRequests in step with Pods.

Whatever happens to a Pod, its CapacityRequest or its node puts the Pod into a queue, once; workers
take it out and make so what should be. Looking at a Pod again is always right: names follow from
Pods, creating twice is refused, deleting is bound to the object that was seen. What failed comes
again after a growing pause. CapacityRequests whose Pod is gone are found by their label.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from random import Random
from typing import Final, Protocol

from bigfleet.kube import (
    AlreadyExistsError,
    Change,
    ConflictError,
    InvalidError,
    KubeClient,
    KubeError,
    NotFoundError,
)
from bigfleet.kube.fleet import CAPACITY_REQUESTS
from bigfleet.model import QuantityError, Resources, parse_resources
from bigfleet.podcontroller.arrivals import ComingNodes
from bigfleet.podcontroller.demand import PodRole, verdict
from bigfleet.podcontroller.errors import UnsupportedClaimError
from bigfleet.podcontroller.notices import UNSUPPORTED, PodNotices
from bigfleet.podcontroller.ownership import NodeOwnership, Whose
from bigfleet.podcontroller.penalties import Defaults
from bigfleet.podcontroller.pods import (
    ArrivingNode,
    DemandPod,
    PodRequest,
    PodToleration,
    WatchedNode,
)
from bigfleet.podcontroller.request import Document, request_name, translate
from bigfleet.podcontroller.requirements import as_documents, tolerations_of
from bigfleet.podcontroller.resource_claims import ClaimBook, MissingClaimError, any_exists
from bigfleet.podcontroller.stuck import StuckPods, is_met, second_name, second_of
from bigfleet.wire.backoff import Backoff

READ_REQUESTS: Final = CAPACITY_REQUESTS.read_as(PodRequest)
_PENDING: Final = {"status": {"phase": "Pending"}}
ASKED_AGAIN: Final = (
    "It fits on no node although everything that was asked for has come: room for it is asked for "
    "once more."
)
NOTICE_SECONDS: Final = 2.0
"""Between two looks at what the owners of waiting Pods have to know."""
_IN_ONE_GO: Final = 500
"""Pods looked at before others get their turn."""
Key = tuple[str, str]
"""Namespace and name of a Pod."""
_log = logging.getLogger(__name__)


class ControllerMetrics(Protocol):
    """What is counted."""

    def reconciled(self, outcome: str, seconds: float) -> None:
        """A Pod was looked at."""

    def queue(self, depth: int) -> None:
        """So many Pods wait."""


class PodController:
    """Pods and their CapacityRequests."""

    def __init__(
        self,
        client: KubeClient,
        notices: PodNotices,
        ownership: NodeOwnership,
        counts: ControllerMetrics,
        rng: Random,
        defaults: Defaults,
        stuck: StuckPods,
        coming: ComingNodes,
        claims: ClaimBook,
        *,
        adopts: bool,
        workers: int,
    ) -> None:
        self._client, self._notices, self._ownership = client, notices, ownership
        self._counts, self._rng, self._defaults = counts, rng, defaults
        self._stuck, self._adopts, self._workers = stuck, adopts, workers
        self._coming, self._claims = coming, claims
        self._pods: dict[Key, DemandPod] = {}
        self._waiting: dict[Key, None] = {}
        """Pods without a node."""
        self._on_node: dict[str, set[Key]] = {}
        self._requests: dict[Key, PodRequest] = {}
        self._of_name: dict[Key, set[str]] = {}
        """Names of CapacityRequests by the Pod they name as their owner."""
        self._again: dict[Key, str] = {}
        """Pods that are to have a second request, with their UIDs."""
        self._queue: dict[Key, None] = {}
        self._busy: set[Key] = set()
        self._backoffs: dict[Key, Backoff] = {}
        self._bell = asyncio.Event()
        ownership.on_change.append(self._node_changed)
        claims.on_change, claims.asks = self._put, self._asks

    @property
    def depth(self) -> int:
        """Pods that wait or are being looked at."""
        return len(self._queue) + len(self._busy)

    # -- what watches bring ----------------------------------------------------------------------

    def pod_seen(self, change: Change[DemandPod]) -> None:
        """A Pod came, changed or went."""
        found = change.new or change.old
        if found is None:
            return
        key = found.key
        before = self._pods.pop(key, None)
        self._waiting.pop(key, None)
        if before is not None and before.spec.node_name:
            self._on_node[before.spec.node_name].discard(key)
        pod = change.new
        if pod is not None:
            self._pods[key] = pod
            if pod.spec.node_name:
                self._on_node.setdefault(pod.spec.node_name, set()).add(key)
            else:
                self._waiting[key] = None
            if before is not None and _facts(before) == _facts(pod):
                return
        self._claims.pod_seen(key, pod)
        self._put(key)

    def request_seen(self, change: Change[PodRequest]) -> None:
        """A CapacityRequest came, changed or went."""
        found = change.new or change.old
        if found is None or not found.metadata.owner_references:
            return
        namespace, name = found.metadata.namespace, found.metadata.name
        pod: Key = (namespace, found.metadata.owner_references[0].name)
        if change.new is None:
            self._requests.pop((namespace, name), None)
            names = self._of_name.get(pod, set())
            names.discard(name)
            if not names:
                self._of_name.pop(pod, None)
        else:
            self._requests[namespace, name] = change.new
            self._of_name.setdefault(pod, set()).add(name)
        if change.new is None or change.old is None or change.new.spec != change.old.spec:
            self._put(pod)

    def machine_seen(self, change: Change[ArrivingNode]) -> None:
        """An UpcomingNode came, changed or went."""
        self._stuck.machine_seen(change)
        self._coming.machine_seen(change)

    def node_seen(self, change: Change[WatchedNode]) -> None:
        """A Node came, changed or went."""
        self._coming.node_seen(change)

    def _node_changed(self, node_name: str) -> None:
        for key in self._on_node.get(node_name, ()):
            self._put(key)

    # -- working ---------------------------------------------------------------------------------

    def look_at_all(self) -> None:
        """Everything that is known is looked at: what happened without a leader is not missed."""
        for key in self._pods:
            self._put(key)
        for key in self._of_name:
            self._put(key)

    async def run(self) -> None:
        """Work until cancelled."""
        self.look_at_all()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._workers):
                    group.create_task(self._work())
                group.create_task(self._judge_nodes())
                group.create_task(self._tell_owners())
                if self._stuck.after:
                    group.create_task(self._judge_stuck())
        finally:
            self._busy.clear()

    def _put(self, key: Key) -> None:
        self._queue[key] = None
        self._bell.set()

    async def _work(self) -> None:
        while True:
            key = next((one for one in self._queue if one not in self._busy), None)
            if key is None:
                self._bell.clear()
                await self._bell.wait()
                continue
            del self._queue[key]
            self._busy.add(key)
            self._counts.queue(len(self._queue))
            try:
                await self._look(key)
            finally:
                self._busy.discard(key)
                if key in self._queue:
                    self._bell.set()
            # Most looks change nothing and never wait; others have to get their turn.
            await asyncio.sleep(0)

    async def _look(self, key: Key) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            outcome = await self._reconcile(key)
            self._backoffs.pop(key, None)
        except KubeError as error:
            outcome = "error"
            _log.warning("pod not reconciled", extra={"pod": "/".join(key), "error": str(error)})
            backoff = self._backoffs.setdefault(key, Backoff(0.2, 30.0, self._rng))
            loop.call_later(backoff.next(), self._put, key)
        self._counts.reconciled(outcome, loop.time() - began)

    async def _reconcile(self, key: Key) -> str:
        """Make so what should be; the outcome as it is counted."""
        pod = self._pods.get(key)
        if pod is None:
            self._again.pop(key, None)
            self._notices.forget(key)
            await self._drop_others(key, "")
            return "pod_gone"
        uid = pod.metadata.uid
        self._claims.follow(pod)
        await self._drop_others(key, uid)
        judged = verdict(pod, on_foreign_node=self._is_foreign(pod.spec.node_name))
        if judged is not PodRole.DEMAND:
            await self._drop(key, uid)
            return "pod_terminal" if judged is PodRole.TERMINAL else "pod_skipped"
        devices = await self._devices(pod)
        if devices is None:
            return "pod_unsupported"
        translation = translate(pod, self._defaults, devices)
        for note in translation.notes:
            self._notices.problem(pod, note)
        if translation.request is None:
            await self._drop(key, uid)
            return "pod_skipped"
        outcome = await self._ensure(pod, translation.request)
        return await self._follow_second(pod, translation.request) or outcome

    async def _devices(self, pod: DemandPod) -> Resources | None:
        """What a Pod's ResourceClaims add to its request; None where they cannot be counted."""
        try:
            return self._claims.devices_of(pod)
        except UnsupportedClaimError as error:
            missing = error.refs if isinstance(error, MissingClaimError) else ()
            # Pods and claims come by watches of their own: one that is only late needs no Event.
            if not await any_exists(self._client, missing):
                self._notices.problem(pod, str(error), UNSUPPORTED)
            # A Pod that runs keeps the request it has: its machine must not be taken away.
            if not pod.spec.node_name:
                await self._drop(pod.key, pod.metadata.uid)
            return None

    def _asks(self, pod: DemandPod) -> bool:
        """Whether a Pod would have a request, were it not for its claims."""
        judged = verdict(pod, on_foreign_node=self._is_foreign(pod.spec.node_name))
        return judged is PodRole.DEMAND and translate(pod, self._defaults).request is not None

    async def _follow_second(self, pod: DemandPod, first: Document) -> str:
        """A Pod's second request, where it has or gets one; empty where nothing was made."""
        there = self._second(pod)
        if there is not None and not self._stuck.after:
            await self._delete(there)
        elif there is not None or self._again.get(pod.key) == pod.metadata.uid:
            outcome = await self._ensure(pod, second_of(first, pod))
            self._again.pop(pod.key, None)
            return outcome if there is None else ""
        return ""

    def _second(self, pod: DemandPod) -> PodRequest | None:
        name = second_name(pod.metadata.name, pod.metadata.uid)
        return self._requests.get((pod.metadata.namespace, name))

    def _is_foreign(self, node_name: str) -> bool:
        if not node_name or not self._adopts:
            return False
        return self._ownership.whose(node_name) is Whose.FOREIGN

    async def _ensure(self, pod: DemandPod, wanted: Document) -> str:
        namespace, name = wanted["metadata"]["namespace"], wanted["metadata"]["name"]
        there = self._requests.get((namespace, name))
        if there is None:
            try:
                made = await self._client.create(READ_REQUESTS, wanted, namespace)
            except AlreadyExistsError:
                made = await self._client.get(READ_REQUESTS, name, namespace)
                return await self._update(made, wanted)
            except InvalidError as error:
                # It would be refused forever; its owner has to know why nothing comes.
                self._notices.problem(pod, f"No CapacityRequest can be made for it: {error}")
                return "error"
            except NotFoundError:
                # Its namespace went away under it.
                return "pod_gone"
            if not made.status.phase:
                await self._client.merge_patch(
                    READ_REQUESTS, name, _PENDING, namespace, subresource="status"
                )
            self._notices.requested(pod, name, wanted["spec"]["resources"])
            return "cr_created"
        return await self._update(there, wanted)

    async def _update(self, there: PodRequest, wanted: Document) -> str:
        meta, spec = there.metadata, wanted["spec"]
        same = there.spec.priority == spec["priority"] and _same_amounts(
            there.spec.resources or {}, spec["resources"]
        )
        stated = there.spec.tolerations
        if stated is not None and _tolerations(stated) != spec["tolerations"]:
            # They cannot be changed. Its going puts the Pod into the queue, and it is made again.
            await self._delete(there)
            return "cr_updated"
        if same and stated is not None:
            return "cr_exists"
        gone = dict.fromkeys(set(there.spec.resources or {}) - set(spec["resources"]))
        changed = {"priority": spec["priority"], "resources": {**gone, **spec["resources"]}}
        if stated is None:
            changed["tolerations"] = spec["tolerations"]
        patch = {"spec": changed}
        try:
            await self._client.merge_patch(READ_REQUESTS, meta.name, patch, meta.namespace)
        except NotFoundError:
            self._requests.pop((meta.namespace, meta.name), None)
            raise
        return "cr_updated"

    async def _drop(self, key: Key, uid: str) -> None:
        namespace, pod_name = key
        self._again.pop(key, None)
        for name in (request_name(pod_name, uid), second_name(pod_name, uid)):
            there = self._requests.get((namespace, name))
            if there is not None:
                await self._delete(there)

    async def _drop_others(self, key: Key, uid: str) -> None:
        """Requests of earlier Pods of the same name."""
        for name in list(self._of_name.get(key, ())):
            there = self._requests.get((key[0], name))
            if there is not None and there.metadata.owner_references[0].uid != uid:
                await self._delete(there)

    async def _delete(self, there: PodRequest) -> None:
        meta = there.metadata
        try:
            await self._client.delete(READ_REQUESTS, meta.name, meta.namespace, uid=meta.uid)
        except ConflictError:
            # Another object has that name now; it will be looked at by itself.
            return

    async def _judge_nodes(self) -> None:
        """An unknown node is called foreign some time after it appeared."""
        while True:
            await asyncio.sleep(15.0)
            for node_name, keys in list(self._on_node.items()):
                if keys and self._adopts and self._ownership.whose(node_name) is Whose.FOREIGN:
                    for key in keys & self._of_name.keys():
                        self._put(key)

    async def _judge_stuck(self) -> None:
        """A Pod that fits nowhere although all has come gets a second request."""
        while True:
            await asyncio.sleep(self._stuck.pause)
            met = [
                pod
                for (namespace, name), pod in self._pods.items()
                if not pod.spec.node_name
                and is_met(self._requests.get((namespace, request_name(name, pod.metadata.uid))))
                and self._second(pod) is None
            ]
            for pod in self._stuck.choose(met):
                self._notices.problem(pod, ASKED_AGAIN)
                self._again[pod.key] = pod.metadata.uid
                self._put(pod.key)

    async def _tell_owners(self) -> None:
        """Owners of Pods that wait learn what has become of their requests."""
        while True:
            await asyncio.sleep(NOTICE_SECONDS)
            for number, key in enumerate(list(self._waiting)):
                pod = self._pods.get(key)
                if pod is not None and not pod.spec.node_name:
                    request = self._own_request(key, pod)
                    need = None if request is None else request.status.need
                    self._notices.waits(pod, request, self._coming.of(need))
                if number % _IN_ONE_GO == _IN_ONE_GO - 1:
                    await asyncio.sleep(0)

    def _own_request(self, key: Key, pod: DemandPod) -> PodRequest | None:
        """The request of a Pod, as far as it was seen; the first one where it has two."""
        second = second_name(pod.metadata.name, pod.metadata.uid)
        found = (self._requests.get((key[0], name)) for name in self._of_name.get(key, ()))
        own = (one for one in found if one is not None and one.metadata.name != second)
        uid = pod.metadata.uid
        return next((one for one in own if one.metadata.owner_references[0].uid == uid), None)


def _facts(pod: DemandPod) -> tuple[object, ...]:
    """What of a Pod matters to its CapacityRequest; most of what happens to it does not."""
    meta, status = pod.metadata, pod.status
    resize = [c for c in status.conditions if c.type == "PodResizePending"]
    return (
        meta.uid, meta.deletion_timestamp, meta.annotations, meta.labels, pod.spec, status.phase,
        status.container_statuses, status.init_container_statuses, resize,
        status.resource_claim_statuses,
    )  # fmt: skip


def _tolerations(stated: Iterable[PodToleration]) -> list[dict[str, str]]:
    """Those of a CapacityRequest, as this release writes them."""
    return as_documents(tolerations_of(stated)[0])


def _same_amounts(there: Mapping[str, str | int], wanted: dict[str, str]) -> bool:
    """However they are written."""
    try:
        return parse_resources({n: str(a) for n, a in there.items()}) == parse_resources(wanted)
    except QuantityError:
        return False
