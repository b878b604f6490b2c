"""A copy of one kind of objects that follows the API server, and tells of every change.

Handlers get each change once, in order, with the state before and after; after a gap (a new list)
the changes are found by comparing, so that nothing is missed and a deletion is never silent.
Objects that did not change are kept as they are, so a new list costs no second copy. Complete is
what `synced` says, not earlier: no handler should act on half a list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

import structlog

from bigfleet.kube.client import KubeClient
from bigfleet.kube.decoding import BadObject
from bigfleet.kube.list_watch import ListWatch
from bigfleet.kube.objects import ObjectLike, Resource, key_of
from bigfleet.kube.reader import PAGE, WATCH_SECONDS
from bigfleet.wire.backoff import Backoff

log = structlog.get_logger()

T = TypeVar("T")
ObjectT = TypeVar("ObjectT", bound=ObjectLike)


class ChangeKind(Enum):
    """What happened to an object."""

    ADDED = "added"
    CHANGED = "changed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """One change: `old` is None when it was added, `new` when it was deleted."""

    kind: ChangeKind
    key: str
    old: T | None
    new: T | None


Handler = Callable[[Change[T]], None]
BadHandler = Callable[[BadObject], None]


class Informer(Generic[ObjectT]):
    """The objects of one kind, by `namespace/name` (or name), up to date while `run` runs."""

    def __init__(
        self,
        client: KubeClient,
        resource: Resource[ObjectT],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        page: int = PAGE,
        watch_seconds: int = WATCH_SECONDS,
        backoff: Backoff | None = None,
    ) -> None:
        self._objects: dict[str, ObjectT] = {}
        self._handlers: list[Handler[ObjectT]] = []
        self._bad_handlers: list[BadHandler] = []
        self._unseen: set[str] | None = None
        self._synced = asyncio.Event()
        self._source = ListWatch(
            client,
            resource,
            self,
            namespace=namespace,
            labels=labels,
            fields=fields,
            page=page,
            watch_seconds=watch_seconds,
            backoff=backoff,
        )

    # For those who read.

    @property
    def objects(self) -> Mapping[str, ObjectT]:
        """All objects as they are now. A live view: copy it before awaiting anything."""
        return self._objects

    def get(self, key: str) -> ObjectT | None:
        """One object."""
        return self._objects.get(key)

    def __iter__(self) -> Iterator[ObjectT]:
        return iter(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def on_change(self, handler: Handler[ObjectT]) -> None:
        """Tell a function of every change from now on; what is there already comes as added first.
        It is called on the event loop and must be quick; put work into a queue."""
        self._handlers.append(handler)
        for key, item in self._objects.items():
            self._tell(handler, Change(ChangeKind.ADDED, key, None, item))

    def on_bad(self, handler: BadHandler) -> None:
        """Tell a function of objects that cannot be read. Their last good state stays."""
        self._bad_handlers.append(handler)

    @property
    def synced(self) -> bool:
        """Whether a complete list has been taken over, ever."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Until a complete list has been taken over."""
        await self._synced.wait()

    @property
    def trouble(self) -> str | None:
        """What stands between this copy and the present, for people; None when nothing does."""
        return self._source.trouble

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        await self._source.run()

    # For the source: see watching.Sink.

    def begin(self) -> None:
        """A complete list follows."""
        self._unseen = set(self._objects)

    def listed(self, items: Sequence[ObjectT], bad: Sequence[BadObject]) -> None:
        """A page of it."""
        for item in items:
            self.seen(item)
        for one in bad:
            self.bad(one)

    def end(self) -> None:
        """Whatever was not listed is gone."""
        for key in self._unseen or ():
            self._remove(key, self._objects[key])
        self._unseen = None
        self._synced.set()

    def seen(self, item: ObjectT) -> None:
        """Added or changed."""
        key = key_of(item)
        if self._unseen is not None:
            self._unseen.discard(key)
        old = self._objects.get(key)
        if old is None:
            self._put(Change(ChangeKind.ADDED, key, None, item))
        elif old.metadata.uid != item.metadata.uid:
            # Deleted and made again between two looks: two objects, two changes.
            self._remove(key, old)
            self._put(Change(ChangeKind.ADDED, key, None, item))
        elif old.metadata.resource_version != item.metadata.resource_version:
            self._put(Change(ChangeKind.CHANGED, key, old, item))

    def gone(self, item: ObjectT) -> None:
        """Deleted."""
        key = key_of(item)
        old = self._objects.get(key)
        if old is not None and old.metadata.uid == item.metadata.uid:
            self._remove(key, item)

    def bad(self, bad: BadObject) -> None:
        """It cannot be read: its last good state stays."""
        meta = bad.metadata
        if self._unseen is not None:
            self._unseen.discard(f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name)
        log.warning("unreadable object", name=meta.name, namespace=meta.namespace, why=bad.problem)
        for handler in self._bad_handlers:
            handler(bad)

    def _put(self, change: Change[ObjectT]) -> None:
        assert change.new is not None
        self._objects[change.key] = change.new
        self._tell_all(change)

    def _remove(self, key: str, last: ObjectT) -> None:
        del self._objects[key]
        self._tell_all(Change(ChangeKind.DELETED, key, last, None))

    def _tell_all(self, change: Change[ObjectT]) -> None:
        for handler in self._handlers:
            self._tell(handler, change)

    def _tell(self, handler: Handler[ObjectT], change: Change[ObjectT]) -> None:
        try:
            handler(change)
        except Exception:
            log.exception("a handler failed", key=change.key, change=change.kind.value)
