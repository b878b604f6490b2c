"""A scripted API server over real HTTP, for what a real one does too rarely to wait for.

A test says what a path answers, call by call; the last answer repeats. Every request is kept. What
Kubernetes does with objects is left to the real one, in the e2e tests.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that came in."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, object]:
        found = json.loads(self.body)
        assert isinstance(found, dict)
        return found


@dataclass
class ApiServer:
    """What was asked, and what is answered."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    _scripts: dict[tuple[str, str], list[Answer]] = field(default_factory=dict)
    _came: asyncio.Condition = field(default_factory=asyncio.Condition)

    def on(self, method: str, path: str, *answers: Answer) -> None:
        """Answer a path with these, one after the other; the last one repeats."""
        self._scripts[(method, path)] = list(answers)

    def queries(self, name: str) -> list[str]:
        """The values of a query parameter, request by request."""
        return [request.query.get(name, "") for request in self.seen]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Until a condition holds, looked at after every request."""
        async with self._came, asyncio.timeout(30):
            await self._came.wait_for(condition)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        path = request.rel_url.raw_path
        self.seen.append(Seen(request.method, path, request.query, request.headers, body))
        async with self._came:
            self._came.notify_all()
        answers = self._scripts.get((request.method, path))
        if not answers:
            return await refuses(404, "NotFound", f"nothing at {request.method} {path}")(request)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return await answer(request)


@asynccontextmanager
async def api_server() -> AsyncIterator[ApiServer]:
    """A running server that knows nothing yet."""
    server = ApiServer()
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{anything:.*}", server.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


# Answers.


def says(document: object, *, compressed: bool = False) -> Answer:
    """A JSON document, compressed as a real server does with large ones."""

    async def answer(_: web.Request) -> web.StreamResponse:
        body = json.dumps(document).encode()
        headers = {"Content-Type": "application/json"}
        if compressed:
            body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
        return web.Response(body=body, headers=headers)

    return answer


def refuses(
    code: int,
    reason: str = "",
    message: str = "",
    *,
    after: str = "",
    causes: Sequence[str] = (),
) -> Answer:
    """A Status, with a Retry-After where one is given."""

    async def answer(_: web.Request) -> web.StreamResponse:
        details = {"causes": [{"reason": cause, "message": cause} for cause in causes]}
        status = {"kind": "Status", "code": code, "reason": reason, "message": message}
        headers = {"Retry-After": after} if after else {}
        return web.json_response({**status, "details": details}, status=code, headers=headers)

    return answer


async def hangs(_: web.Request) -> web.StreamResponse:
    """Never answers."""
    await asyncio.Event().wait()
    raise AssertionError


async def hangs_up(request: web.Request) -> web.StreamResponse:
    """Cuts the connection without a word."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def dribbles(request: web.Request) -> web.StreamResponse:
    """Sends one byte now and then, forever."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.02)


def pod(name: str, version: int, *, uid: str = "", **more: object) -> dict[str, object]:
    """A Pod of which only the metadata matters."""
    metadata: dict[str, object] = {
        "name": name,
        "namespace": "ns",
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
    }
    return {"kind": "Pod", "metadata": metadata | more}


def lists(*items: Mapping[str, object], version: int, token: str = "") -> Answer:
    """A page of a list."""
    metadata = {"resourceVersion": str(version), **({"continue": token} if token else {})}
    return says({"kind": "PodList", "metadata": metadata, "items": list(items)})


def event(kind: str, document: Mapping[str, object]) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": kind, "object": document}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    """A line that says that nothing happened."""
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})


EXPIRED = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})


def watches(*pieces: bytes, then: Answer | None = None) -> Answer:
    """A watch that sends these bytes, piece by piece, and then ends or does something else."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0)
        if then is not None:
            await then(request)
        return response

    return answer
