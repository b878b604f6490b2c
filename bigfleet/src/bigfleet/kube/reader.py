"""The reading half of the Kubernetes API: one object, a list in pages, a watch.

Answers are decoded into the struct that a `Resource` names. Writing is left to `client`, keeping
what was read to `informer`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from bigfleet.kube.decoding import ListPage, WatchEvent, decode, decode_event, decode_page
from bigfleet.kube.objects import Resource
from bigfleet.kube.ports import KubeClock
from bigfleet.kube.transport import DEADLINE, ApiRequest, ApiTransport

T = TypeVar("T")

PAGE: Final = 1000
"""Objects per page of a list: about 3 MB, decoded in about 10 ms."""
WATCH_SECONDS: Final = 300


class Reader:
    """Reads from one API server."""

    def __init__(self, transport: ApiTransport) -> None:
        self.transport = transport

    @property
    def namespace(self) -> str:
        """The namespace that the configuration names as ours."""
        return self.transport.config.namespace

    @property
    def clock(self) -> KubeClock:
        """The time that this client lives in."""
        return self.transport.clock

    async def read_path(self, path: str, *, deadline: float = DEADLINE) -> bytes:
        """The plain answer of a path that is not an object, such as /version or /readyz."""
        request = ApiRequest("GET", path, "get", "", repeatable=True)
        return await self.transport.call(request, deadline)

    async def get(
        self, resource: Resource[T], name: str, namespace: str = "", *, deadline: float = DEADLINE
    ) -> T:
        """One object."""
        path = resource.path(namespace, name)
        request = ApiRequest("GET", path, "get", resource.plural, repeatable=True)
        return decode(await self.transport.call(request, deadline), resource.struct)

    async def list_page(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = PAGE,
        token: str = "",
        deadline: float = DEADLINE,
    ) -> ListPage[T]:
        """One page of a list; an empty namespace means all of them, limit 0 means one whole
        page."""
        params = _chosen(labelSelector=labels, fieldSelector=fields) | {
            **({"limit": str(limit)} if limit else {}),
            **({"continue": token} if token else {}),
        }
        request = ApiRequest(
            "GET", resource.path(namespace), "list", resource.plural, params, repeatable=True
        )
        return decode_page(await self.transport.call(request, deadline), resource.struct)

    async def list_pages(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = PAGE,
        deadline: float = DEADLINE,
    ) -> AsyncIterator[ListPage[T]]:
        """All pages of a list, one after the other; the deadline is each page's. The next one is
        asked for before one is given, so that server and caller work at the same time."""

        def ask(token: str) -> asyncio.Task[ListPage[T]]:
            return asyncio.create_task(
                self.list_page(
                    resource,
                    namespace,
                    labels=labels,
                    fields=fields,
                    limit=limit,
                    token=token,
                    deadline=deadline,
                )
            )

        coming = ask("")
        try:
            while (page := await coming).token:
                coming = ask(page.token)
                await asyncio.sleep(0)
                yield page
            yield page
        finally:
            coming.cancel()

    async def list_all(
        self, resource: Resource[T], namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> list[T]:
        """Every object; ones that cannot be read are left out."""
        pages = self.list_pages(resource, namespace, labels=labels, fields=fields)
        return [item async for page in pages for item in page.items]

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        version: str,
        labels: str = "",
        fields: str = "",
        seconds: int = WATCH_SECONDS,
    ) -> AsyncIterator[AsyncIterator[WatchEvent[T]]]:
        """Changes since a resource version, until the server ends the watch (after about
        `seconds`)."""
        params = _chosen(labelSelector=labels, fieldSelector=fields) | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
        }
        request = ApiRequest("GET", resource.path(namespace), "watch", resource.plural, params)
        # The server ends it; when it does not, it is no longer there.
        async with self.transport.stream(request, lasts=seconds + 30.0) as lines:
            yield (decode_event(line, resource.struct) async for line in lines)


def _chosen(**selectors: str) -> dict[str, str]:
    return {name: value for name, value in selectors.items() if value}
