"""The API server in memory, on a real port: operator and pod controller dial it as processes.

Objects, versions, conflicts and watches are those of `kubefake`; here is only HTTP, on a thread of
its own, so that a test may wait for processes without holding it up. It also plays kubelet where it
is asked to: a machine that the operator calls Ready becomes a Node.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
from aiohttp import web

from bigfleet.kube.errors import ApiError
from bigfleet.kube.transport import ApiRequest
from kubefake import FakeApiServer
from kubeobjects import node

T = TypeVar("T")
Document = dict[str, Any]
MACHINE_ID = "bigfleet.lucy.sh/machine-id"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{{name: here, context: {{cluster: here, user: me, namespace: bigfleet-system}}}}]
clusters: [{{name: here, cluster: {{server: "{server}"}}}}]
users: [{{name: me, user: {{token: anything}}}}]
"""


class KubeHttp:
    """An API server that runs from `with` to its end."""

    def __init__(self) -> None:
        self._api = FakeApiServer()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="api-server")
        self._runner = web.AppRunner(self._app(), shutdown_timeout=0)
        self._joined: set[str] = set()
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(30)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def kubeconfig(self, folder: Path) -> Path:
        """A file with its address."""
        path = folder / "kubeconfig"
        path.write_text(KUBECONFIG.format(server=self.url))
        return path

    def put(self, document: Document) -> None:
        """Create an object, or replace it."""
        self._on_loop(lambda: self._api.put(document))

    def remove(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object."""
        self._on_loop(lambda: self._api.remove(kind, name, namespace))

    def all(self, kind: str) -> list[Document]:
        """All objects of a kind."""
        return self._on_loop(lambda: self._api.all(kind))

    def join(self) -> list[str]:
        """Every machine that is called Ready becomes a Node; the names of all of them."""
        for upcoming in self.all("UpcomingNode"):
            machine = upcoming["metadata"]["annotations"][MACHINE_ID]
            if upcoming.get("status", {}).get("phase") == "Ready" and machine not in self._joined:
                self._joined.add(machine)
                name = f"node-{len(self._joined)}"
                told = upcoming["status"].get("providerID", "")
                self.put(node(name, provider_id=told, labels={MACHINE_ID: machine}))
        return [one["metadata"]["name"] for one in self.all("Node")]

    def _on_loop(self, function: Callable[[], T]) -> T:
        async def call() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(30)

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=2**28)
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _serve(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def _stop(self) -> None:
        self._api.break_watches()
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") in ("true", "1"):
            return await self._watch(request)
        asked = ApiRequest(
            request.method, request.path, "", "", dict(request.query),
            await request.read() or None, request.content_type,
        )  # fmt: skip
        try:
            return web.Response(body=self._api.call(asked), content_type="application/json")
        except ApiError as error:
            body = msgspec.json.encode(error.status)
            return web.Response(
                status=error.status.code, body=body, content_type="application/json"
            )

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        async with self._watched(request) as lines:
            async for line in lines:
                await response.write(line + b"\n")
        return response

    @asynccontextmanager
    async def _watched(self, request: web.Request) -> AsyncIterator[AsyncIterator[bytes]]:
        queue = self._api.watch(request.path, request.query)

        async def lines() -> AsyncIterator[bytes]:
            while (line := await queue.get()) is not None:
                yield line

        try:
            yield lines()
        finally:
            self._api.unwatch(queue)
