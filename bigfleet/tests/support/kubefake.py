"""An API server in memory, in the place of the transport: the real client, informers and leases run
on it.

It keeps objects as JSON with resource versions and UIDs, knows the status subresource, refuses what
conflicts, and streams changes to watchers. Pods that are evicted leave at once unless a budget says
no. What a test wants to go wrong it says beforehand.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from bigfleet.kube import ClusterConfig, KubeClient, UnreachableError
from bigfleet.kube.errors import ApiError, ApiStatus, error_of
from bigfleet.kube.ports import KubeSystemClock, NullObserver
from bigfleet.kube.transport import DEADLINE, ApiRequest, ApiTransport

Document = dict[str, Any]


class FakeApiServer:
    """The objects, by the path of their collection and their key."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Document] = {}
        """By plural, namespace and name."""
        self.budgets: dict[tuple[str, str], int] = {}
        """How often the eviction of a Pod is refused before it is allowed."""
        self.evicted: list[str] = []
        self.calls: list[tuple[str, str]] = []
        self.failing: deque[ApiError | UnreachableError] = deque()
        """Errors for the next calls, whatever they are."""
        self.refuse: Callable[[ApiRequest], ApiError | UnreachableError | None] = lambda _request: (
            None
        )
        self.on_evicted: Callable[[Document], None] = self.drop_pod
        self._versions = itertools.count(1)
        self._uids = itertools.count(1)
        self._watchers: list[tuple[str, str, asyncio.Queue[bytes | None]]] = []
        self._log: deque[tuple[int, str, Document, bytes]] = deque(maxlen=200_000)
        """What happened, by resource version."""

    # -- for tests -------------------------------------------------------------------------------

    def client(self) -> KubeClient:
        """A client of it."""
        return KubeClient(FakeTransport(self))

    def put(self, document: Document) -> Document:
        """Create an object, or replace it, as another client would."""
        plural = _plural(document["kind"])
        meta = document["metadata"]
        key = (plural, meta.get("namespace", ""), meta["name"])
        before = self.objects.get(key)
        made = copy.deepcopy(document)
        uid = before["metadata"]["uid"] if before else f"uid-{next(self._uids)}"
        made["metadata"].setdefault("uid", uid)
        self._store(key, made, "MODIFIED" if before else "ADDED")
        return made

    def remove(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object, as another client would."""
        self._delete((_plural(kind), namespace, name))

    def drop_pod(self, pod: Document) -> None:
        """An evicted Pod leaves."""
        meta = pod["metadata"]
        self._delete(("pods", meta["namespace"], meta["name"]))

    def get(self, kind: str, name: str, namespace: str = "") -> Document | None:
        """An object as it is."""
        return self.objects.get((_plural(kind), namespace, name))

    def all(self, kind: str) -> list[Document]:
        """All objects of a kind."""
        plural = _plural(kind)
        return [found for key, found in sorted(self.objects.items()) if key[0] == plural]

    def break_watches(self) -> None:
        """Every watch ends, as when the API server restarts."""
        for _, _, queue in self._watchers:
            queue.put_nowait(None)

    # -- for the transport -----------------------------------------------------------------------

    def call(self, request: ApiRequest) -> bytes:
        """One request."""
        self.calls.append((request.method, request.path))
        if self.failing:
            raise self.failing.popleft()
        refusal = self.refuse(request)
        if refusal is not None:
            raise refusal
        plural, namespace, name, subresource = _split(request.path)
        key = (plural, namespace, name)
        body = msgspec.json.decode(request.body) if request.body else {}
        if request.method == "GET":
            return self._get(key, request.params)
        if request.method == "POST" and subresource == "eviction":
            return self._evict(key, body)
        if request.method == "POST":
            return self._create((plural, namespace, body["metadata"]["name"]), body)
        if request.method == "DELETE":
            return self._delete_call(key, body)
        return self._patch(key, subresource, request.content_type, body)

    def watch(self, path: str, params: Mapping[str, str]) -> asyncio.Queue[bytes | None]:
        """Changes since a version."""
        plural, _, _, _ = _split(path)
        label, since = params.get("labelSelector", ""), int(params["resourceVersion"])
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        for version, kind, document, line in self._log:
            if version > since and kind == plural and _labelled(document, label):
                queue.put_nowait(line)
        self._watchers.append((plural, label, queue))
        return queue

    def unwatch(self, queue: asyncio.Queue[bytes | None]) -> None:
        """No process listens any more."""
        self._watchers = [one for one in self._watchers if one[2] is not queue]

    def _get(self, key: tuple[str, str, str], params: Mapping[str, str]) -> bytes:
        plural, namespace, name = key
        if name:
            return msgspec.json.encode(self._found(key))
        label = params.get("labelSelector", "")
        items = [
            found
            for (kind, where, _), found in sorted(self.objects.items())
            if kind == plural
            and namespace in ("", where)
            and _labelled(found, label)
            and _has_field(found, params.get("fieldSelector", ""))
        ]
        version = str(next(self._versions))
        return msgspec.json.encode({"metadata": {"resourceVersion": version}, "items": items})

    def _create(self, key: tuple[str, str, str], body: Document) -> bytes:
        if key in self.objects:
            raise refusal(409, "AlreadyExists", f"{key[2]} exists")
        made = copy.deepcopy(body)
        made["metadata"]["uid"] = f"uid-{next(self._uids)}"
        made.pop("status", None)
        if key[0] == "capacityrequests":
            made["status"] = {"phase": "Pending"}
        self._store(key, made, "ADDED")
        return msgspec.json.encode(made)

    def _patch(self, key: tuple[str, str, str], subresource: str, kind: str, body: Any) -> bytes:
        is_apply = kind.startswith("application/apply-patch")
        if is_apply and key not in self.objects and not subresource:
            self._create(key, body)
        found = self._found(key)
        changed = copy.deepcopy(found)
        if kind.startswith("application/json-patch"):
            _operate(changed, body)
        else:
            version = body.get("metadata", {}).pop("resourceVersion", None)
            if version not in (None, found["metadata"]["resourceVersion"]):
                raise refusal(409, "Conflict", "another client wrote first")
            patch = {"status": body.get("status", {})} if subresource == "status" else body
            if is_apply and subresource == "status" and key[0] == "upcomingnodes":
                changed["status"] = {}
            merge(changed, patch)
        if subresource != "status" and "status" in found:
            changed["status"] = found["status"]
        if changed != found:
            self._store(key, changed, "MODIFIED")
        return msgspec.json.encode(changed)

    def _evict(self, key: tuple[str, str, str], body: Document) -> bytes:
        pod = self._found(key)
        uid = body.get("deleteOptions", {}).get("preconditions", {}).get("uid")
        if uid not in (None, pod["metadata"]["uid"]):
            raise refusal(409, "Conflict", "the UID in the precondition does not match")
        blocked = self.budgets.get(key[1:], 0)
        if blocked > 0:
            self.budgets[key[1:]] = blocked - 1
            cause = {"reason": "DisruptionBudget", "message": "the budget needs it"}
            status = msgspec.convert(
                {"code": 429, "reason": "TooManyRequests", "message": "Cannot evict pod as it "
                 "would violate the pod's disruption budget.", "details": {"causes": [cause]}},
                ApiStatus,
            )  # fmt: skip
            raise error_of(status)
        self.evicted.append(key[2])
        self.on_evicted(pod)
        return b"{}"

    def _delete_call(self, key: tuple[str, str, str], body: Document) -> bytes:
        found = self._found(key)
        uid = body.get("preconditions", {}).get("uid")
        if uid not in (None, found["metadata"]["uid"]):
            raise refusal(409, "Conflict", "another object has that name")
        self._delete(key)
        return b"{}"

    def _delete(self, key: tuple[str, str, str]) -> None:
        found = self.objects.pop(key, None)
        if found is None:
            return
        found = copy.deepcopy(found)
        found["metadata"]["resourceVersion"] = str(next(self._versions))
        self._tell(key[0], "DELETED", found)
        uid = found["metadata"]["uid"]
        for other, one in list(self.objects.items()):
            if any(o.get("uid") == uid for o in one["metadata"].get("ownerReferences", ())):
                self._delete(other)

    def _found(self, key: tuple[str, str, str]) -> Document:
        found = self.objects.get(key)
        if found is None:
            raise refusal(404, "NotFound", f"{key[2]} is not there")
        return found

    def _store(self, key: tuple[str, str, str], document: Document, kind: str) -> None:
        document["metadata"]["resourceVersion"] = str(next(self._versions))
        if key[1]:
            document["metadata"]["namespace"] = key[1]
        self.objects[key] = document
        self._tell(key[0], kind, document)

    def _tell(self, plural: str, kind: str, document: Document) -> None:
        line = msgspec.json.encode({"type": kind, "object": document})
        version = int(document["metadata"]["resourceVersion"])
        self._log.append((version, plural, document, line))
        for watched, label, queue in self._watchers:
            if watched == plural and _labelled(document, label):
                queue.put_nowait(line)


class FakeTransport(ApiTransport):
    """Hands requests to the server in memory."""

    def __init__(self, server: FakeApiServer) -> None:
        self.server = server
        self.config = ClusterConfig("http://fake", namespace="bigfleet-system")
        self.clock = LoopClock()
        self.chance = random.Random(7)
        self.observer = NullObserver()

    async def close(self) -> None:
        """There is nothing to close."""

    async def call(self, request: ApiRequest, deadline: float = DEADLINE) -> bytes:
        """One request, after a turn of the loop."""
        await asyncio.sleep(0)
        return self.server.call(request)

    @asynccontextmanager
    async def stream(
        self, request: ApiRequest, *, lasts: float, deadline: float = DEADLINE
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """A watch."""
        queue = self.server.watch(request.path, request.params)
        try:
            yield _lines(queue)
        finally:
            self.server.unwatch(queue)


class LoopClock(KubeSystemClock):
    """The event loop's time, which may be virtual."""

    def monotonic(self) -> float:
        """The loop's."""
        return asyncio.get_running_loop().time()


async def _lines(queue: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
    while (line := await queue.get()) is not None:
        yield line


def refusal(code: int, reason: str, message: str) -> ApiError:
    """What an API server says."""
    return error_of(ApiStatus(code=code, reason=reason, message=message))


def _plural(kind: str) -> str:
    special = {"AvailableCapacity": "availablecapacities"}
    return special.get(kind, kind.lower() + "s")


def _split(path: str) -> tuple[str, str, str, str]:
    """Plural, namespace, name and subresource."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    plural, name, subresource = [*parts, "", "", ""][:3]
    return plural, namespace, name, subresource


def _labelled(document: Document, label: str) -> bool:
    """One label by itself, or with its value."""
    key, has_value, value = label.partition("=")
    labels = document["metadata"].get("labels", {})
    return not label or (key in labels and (not has_value or labels[key] == value))


def _has_field(document: Document, selector: str) -> bool:
    """One field, by its path, and its value."""
    path, _, value = selector.partition("=")
    found: Any = document
    for part in path.split(".") if selector else ():
        found = found.get(part, "")
    return not selector or found == value


def merge(target: Document, patch: Document) -> None:
    """A merge patch: None takes away."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            below = target.setdefault(key, {})
            if not isinstance(below, dict):
                below = target[key] = {}
            merge(below, value)
        else:
            target[key] = copy.deepcopy(value)


def _operate(target: Document, operations: list[Document]) -> None:
    for one in operations:
        *parents, last = one["path"].strip("/").split("/")
        place = target
        for parent in parents:
            place = place[parent]
        if one["op"] == "test" and place.get(last) != one["value"]:
            raise refusal(422, "Invalid", "the test failed")
        if one["op"] == "add":
            place[last] = one["value"]
