"""List, then watch, without end: keeps a sink in step with the API server.

A list gives the state and its version; a watch continues from there, and from its last bookmark or
event when it is cut. Only a version that the server has forgotten (410) costs a new list. Troubles
are waited out with jittered back-off; `trouble` says what it is waiting for. What is kept is left
to the sink.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, Generic, Protocol, TypeVar

import structlog

from bigfleet.kube.client import KubeClient
from bigfleet.kube.decoding import BadObject, EventKind, ListPage, WatchEvent
from bigfleet.kube.errors import ApiError, GoneError, KubeError
from bigfleet.kube.objects import ObjectLike, Resource
from bigfleet.kube.reader import PAGE, WATCH_SECONDS
from bigfleet.wire.backoff import Backoff

log = structlog.get_logger()

ObjectT = TypeVar("ObjectT", bound=ObjectLike)
SinkT = TypeVar("SinkT", bound=ObjectLike, contravariant=True)

PAGED_TRIES: Final = 2
OBLIGING: Final = 5.0
"""Seconds up to which waits grow for a server that says when to come again, and so is there: one
that was restarted says so until it has read everything."""
GOOD_AFTER: Final = 5.0
"""Seconds a watch has to last to count as good although nothing happened."""


class Sink(Protocol[SinkT]):
    """The keeper of the state. Called on the event loop, so it must be quick."""

    def begin(self) -> None:
        """A complete list follows."""

    def listed(self, items: Sequence[SinkT], bad: Sequence[BadObject]) -> None:
        """A page of it."""

    def end(self) -> None:
        """That was all: whatever was not listed is gone."""

    def seen(self, item: SinkT) -> None:
        """Added or changed."""

    def gone(self, item: SinkT) -> None:
        """Deleted; the item is its last state."""

    def bad(self, bad: BadObject) -> None:
        """Added or changed, but it cannot be read."""


class ListWatch(Generic[ObjectT]):
    """Feeds one sink with one kind of objects."""

    def __init__(
        self,
        client: KubeClient,
        resource: Resource[ObjectT],
        sink: Sink[ObjectT],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        page: int = PAGE,
        watch_seconds: int = WATCH_SECONDS,
        backoff: Backoff | None = None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._sink = sink
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._page = page
        self._watch_seconds = watch_seconds
        self._backoff = backoff or Backoff(chance=client.transport.chance)
        self._version = ""
        self.trouble: str | None = "the first list has not ended yet"
        """What stands between the sink and the present, for people; None when nothing does."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                if not self._version:
                    self._version = await self._list()
                self.trouble = None
                await self._watch()
                self._restarted("closed")
            except GoneError as error:
                self._version = ""
                self._restarted("expired")
                # What to do is known: the waits before it were for something else.
                self._backoff.reset()
                await self._wait(error)
            except KubeError as error:
                self._restarted("error")
                await self._wait(error)

    def _restarted(self, reason: str) -> None:
        self._client.transport.observer.watch_restarted(self._resource.plural, reason)

    async def _wait(self, error: KubeError) -> None:
        self.trouble = f"{self._resource.plural}: {error}"
        retry_after = error.retry_after if isinstance(error, ApiError) else None
        seconds = self._backoff.next(retry_after)
        if retry_after is not None:
            seconds = min(seconds, max(retry_after * 1.25, OBLIGING))
        log.warning(
            "watch interrupted",
            resource=self._resource.plural,
            error=str(error),
            again_in=round(seconds, 2),
        )
        await self._client.clock.sleep(seconds)

    async def _list(self) -> str:
        for _ in range(PAGED_TRIES):
            try:
                return await self._list_in_pages(self._page)
            except GoneError:
                # Versions are forgotten every few minutes, and this list met such a moment.
                continue
        # In one piece it cannot grow too old between its pages; but it is held as a whole.
        return await self._list_in_pages(0)

    async def _list_in_pages(self, limit: int) -> str:
        version = ""
        self._sink.begin()
        pages: AsyncIterator[ListPage[ObjectT]] = self._client.list_pages(
            self._resource,
            self._namespace,
            labels=self._labels,
            fields=self._fields,
            limit=limit,
            deadline=60.0,
        )
        async for page in pages:
            self._sink.listed(page.items, page.bad)
            version = page.version
        self._sink.end()
        self._backoff.reset()
        return version

    async def _watch(self) -> None:
        started = self._client.clock.monotonic()
        # Not all watches of a fleet's operators end in the same second.
        seconds = self._watch_seconds + int(
            self._client.transport.chance.random() * self._watch_seconds
        )
        async with self._client.watch(
            self._resource,
            self._namespace,
            version=self._version,
            labels=self._labels,
            fields=self._fields,
            seconds=seconds,
        ) as events:
            async for event in events:
                self._take(event)
                self._backoff.reset()
        if self._client.clock.monotonic() - started >= GOOD_AFTER:
            self._backoff.reset()
        else:
            # A server that hangs up at once is not asked again at once.
            await self._client.clock.sleep(self._backoff.next())

    def _take(self, event: WatchEvent[ObjectT]) -> None:
        if event.kind is EventKind.DELETED and event.object is not None:
            self._sink.gone(event.object)
        elif event.object is not None:
            self._sink.seen(event.object)
        elif event.bad is not None:
            self._sink.bad(event.bad)
        if event.version:
            self._version = event.version
