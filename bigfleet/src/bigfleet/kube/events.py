"""Events on objects, which is how Kubernetes tells people what happened (`kubectl describe`).

Emitting never waits and never fails: events go into a bounded queue that one writer empties, and
the oldest is dropped when it is full. The same words about the same object are one event whose
count grows. An event of one occurrence (`once`) is written a single time, whatever its words: its
name follows from the occurrence, so that neither a second replica nor a restart writes another.
Events are advice; nothing depends on them.
"""

from __future__ import annotations

import hashlib
from asyncio import Event as Bell
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, TypeVar

import structlog

from bigfleet.kube.client import KubeClient
from bigfleet.kube.errors import AlreadyExistsError, KubeError, NotFoundError
from bigfleet.kube.objects import EVENTS, ObjectLike, Resource

log = structlog.get_logger()

T = TypeVar("T")

QUEUE: Final = 1000
REMEMBERED: Final = 4096
"""Events whose count is kept up; older ones start again at one."""
AT_MOST_EVERY: Final = 60.0
"""Seconds between two writes of the same event; what comes in between is only counted."""


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """What an event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    @classmethod
    def to(cls, resource: Resource[T], found: ObjectLike) -> ObjectRef:
        """The reference to an object that was read."""
        meta = found.metadata
        return cls(resource.api_version, resource.kind, meta.name, meta.namespace, meta.uid)


@dataclass(slots=True)
class _EmittedEvent:
    """An event that was emitted: how often, and what the API server knows of it."""

    ref: ObjectRef
    warning: bool
    reason: str
    message: str
    name: str
    first_seen: str
    is_once: bool = False
    count: int = 0
    written: int = 0
    written_at: float = float("-inf")


class EventRecorder:
    """Emits events in the name of one component."""

    def __init__(
        self, client: KubeClient, component: str, *, instance: str = "", queue: int = QUEUE
    ) -> None:
        self._client = client
        self._component = component
        self._instance = instance or component
        self._queue = queue
        self._emitted: OrderedDict[tuple[ObjectRef, str, str], _EmittedEvent] = OrderedDict()
        self._waiting: OrderedDict[tuple[ObjectRef, str, str], None] = OrderedDict()
        self._bell = Bell()
        self.dropped = 0

    def normal(self, ref: ObjectRef, reason: str, message: str, *, once: str = "") -> None:
        """Something went as it should. `once` names the occurrence, where it is one."""
        self._emit(ref, reason, message, once, warning=False)

    def warn(self, ref: ObjectRef, reason: str, message: str, *, once: str = "") -> None:
        """Something needs a person's eye. `reason` is one word in CamelCase."""
        self._emit(ref, reason, message, once, warning=True)

    def _emit(self, ref: ObjectRef, reason: str, message: str, once: str, *, warning: bool) -> None:
        key = (ref, reason, once or message)
        emitted = self._emitted.get(key)
        if emitted is None:
            emitted = self._emitted[key] = _EmittedEvent(
                ref, warning, reason, message[:1024], self._name(key), self._now(), bool(once)
            )
            if len(self._emitted) > max(REMEMBERED, 2 * self._queue):
                self._emitted.popitem(last=False)
        elif once:
            return
        self._emitted.move_to_end(key)
        emitted.count += 1
        recently = self._client.clock.monotonic() - emitted.written_at < AT_MOST_EVERY
        if recently or key in self._waiting:
            return
        self._waiting[key] = None
        if len(self._waiting) > self._queue:
            self._waiting.popitem(last=False)
            self.dropped += 1
        self._bell.set()

    async def run(self) -> None:
        """Write what was emitted, until cancelled."""
        while True:
            await self._bell.wait()
            self._bell.clear()
            while self._waiting:
                key, _ = self._waiting.popitem(last=False)
                emitted = self._emitted.get(key)
                if emitted is not None:
                    await self._write(emitted)

    async def _write(self, emitted: _EmittedEvent) -> None:
        emitted.written_at = self._client.clock.monotonic()
        count = emitted.count
        namespace = emitted.ref.namespace or "default"
        try:
            if emitted.written:
                try:
                    await self._recount(emitted, namespace, count)
                except NotFoundError:
                    await self._client.create(EVENTS, self._body(emitted, namespace), namespace)
            else:
                await self._client.create(EVENTS, self._body(emitted, namespace), namespace)
        except AlreadyExistsError:
            if not emitted.is_once:
                await self._recount_quietly(emitted, namespace, count)
        except KubeError as error:
            log.warning("event not written", reason=emitted.reason, error=str(error))
            return
        emitted.written = count

    async def _recount(self, emitted: _EmittedEvent, namespace: str, count: int) -> None:
        patch = {"count": count, "lastTimestamp": self._now(), "message": emitted.message}
        await self._client.merge_patch(EVENTS, emitted.name, patch, namespace)

    async def _recount_quietly(self, emitted: _EmittedEvent, namespace: str, count: int) -> None:
        try:
            await self._recount(emitted, namespace, count)
        except KubeError as error:
            log.warning("event not written", reason=emitted.reason, error=str(error))

    def _body(self, emitted: _EmittedEvent, namespace: str) -> dict[str, object]:
        ref = emitted.ref
        return {
            "metadata": {"name": emitted.name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": ref.api_version,
                "kind": ref.kind,
                "name": ref.name,
                **({"namespace": ref.namespace} if ref.namespace else {}),
                **({"uid": ref.uid} if ref.uid else {}),
            },
            "type": "Warning" if emitted.warning else "Normal",
            "reason": emitted.reason,
            "message": emitted.message,
            "count": emitted.count,
            "firstTimestamp": emitted.first_seen,
            "lastTimestamp": self._now(),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }

    def _name(self, key: tuple[ObjectRef, str, str]) -> str:
        ref, reason, message = key
        words = "\0".join((ref.uid, ref.kind, self._component, reason, message))
        # The same name from both replicas, so that two never tell the same twice. A name that was
        # cut must not end in what only stands between letters, or the API server refuses it.
        return f"{ref.name[:200].rstrip('.-')}.{hashlib.sha256(words.encode()).hexdigest()[:16]}"

    def _now(self) -> str:
        return self._client.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
