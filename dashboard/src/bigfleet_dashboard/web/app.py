"""The ASGI application: page, static files, API and probes, behind the guard."""

from __future__ import annotations

import gzip
import hashlib
import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bigfleet_dashboard import __version__
from bigfleet_dashboard.config import Config
from bigfleet_dashboard.errors import RequestError
from bigfleet_dashboard.hosts import AllowedHosts
from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.web import views
from bigfleet_dashboard.web.api import Api
from bigfleet_dashboard.web.auth import Guard
from bigfleet_dashboard.web.responses import refusal

SCREENS: Final = frozenset(
    {"", "shards", "clusters", "needs", "decisions", "machines", "topology", "providers", "cost",
     "whatif"}
)  # fmt: skip
_KINDS: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class File:
    """A static file, read once."""

    body: bytes
    packed: bytes
    kind: str
    tag: str


def static_files() -> Mapping[str, File]:
    """Everything below static/, by its path there."""
    found: dict[str, File] = {}

    def read(folder: Traversable, path: str) -> None:
        for each in folder.iterdir():
            if each.is_dir():
                read(each, f"{path}{each.name}/")
            elif (kind := _KINDS.get(each.name.rpartition(".")[2])) is not None:
                body = each.read_bytes()
                tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
                found[path + each.name] = File(body, gzip.compress(body, 9, mtime=0), kind, tag)

    read(files("bigfleet_dashboard") / "static", "")
    return found


class Pages:
    """The shell of the page, and what it loads."""

    def __init__(self, fleet: Fleet, config: Config) -> None:
        self._fleet, self._config = fleet, config
        self._files = static_files()
        self._shell = self._files["index.html"].body.decode("utf-8")

    async def static(self, request: Request) -> Response:
        """A file."""
        found = self._files.get(request.path_params["path"])
        if found is None or found.kind.startswith("text/html"):
            return PlainTextResponse("there is no such file\n", 404)
        headers = {"ETag": found.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if found.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            packed = {**headers, "Content-Encoding": "gzip"}
            return Response(found.packed, 200, packed, found.kind)
        return Response(found.body, 200, headers, found.kind)

    async def shell(self, request: Request) -> Response:
        """The page; with the present numbers in it, so that the first paint shows them."""
        screen = request.path_params.get("path", "").partition("/")[0]
        known = screen in SCREENS
        begin = {
            "version": __version__,
            "user": request.scope.get("state", {}).get("user") or None,
            "demo": self._config.demo_socket is not None,
            "overview": views.overview(self._fleet),
        }
        # Inside a script element only `<` could end it.
        data = json.dumps(begin).replace("<", "\\u003c")
        text = self._shell.replace("{{begin}}", data).replace(
            "{{version}}", html.escape(__version__)
        )
        return Response(text, 200 if known else 404, {"Cache-Control": "no-cache"}, _KINDS["html"])


def make_app(fleet: Fleet, config: Config, api: Api) -> Starlette:
    """All of it."""
    pages = Pages(fleet, config)
    hosts = AllowedHosts(config.host, config.allowed_hosts)

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        if fleet.coordinator.at_seconds or any(s.heard_at for s in fleet.shards.values()):
            return PlainTextResponse("ok\n")
        return PlainTextResponse("no coordinator or shard has answered yet\n", 503)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestError)
        return refusal(request, str(error), error.status)

    async def unknown(request: Request, _error: Exception) -> Response:
        return refusal(request, f"there is nothing at {request.url.path}: see /api/v1", 404)

    async def wrong_method(request: Request, _error: Exception) -> Response:
        return refusal(request, f"{request.method} is not for {request.url.path}", 405)

    async def broken(request: Request, error: Exception) -> Response:
        return refusal(request, f"a mistake of the dashboard: {type(error).__name__}", 500)

    async def nothing(request: Request) -> Response:
        return await unknown(request, RequestError())

    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            *api.routes(),
            Route("/api/{path:path}", nothing),
            Route("/static/{path:path}", pages.static),
            Route("/", pages.shell),
            Route("/{path:path}", pages.shell),
        ],
        middleware=[Middleware(Guard, auth=config.auth, hosts=hosts)],
        exception_handlers={RequestError: refused, 404: unknown, 405: wrong_method, 500: broken},
    )
