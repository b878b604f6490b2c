"""HTTP routes: validates requests and delegates to state and what-if.

Lists are cut into pages by `offset` and `limit`, and say how many there are in `total`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from bigfleet_dashboard import __version__
from bigfleet_dashboard.cost import cost_document
from bigfleet_dashboard.errors import BadRequestError, NotFoundError, UnavailableError
from bigfleet_dashboard.explain import drawer
from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.state.machines import CAPACITY, STATES
from bigfleet_dashboard.state.needs import CLASSES, SORTS, NeedFilter, select
from bigfleet_dashboard.web import topology, views
from bigfleet_dashboard.web.events import EventStreams
from bigfleet_dashboard.web.responses import Handler, answer, one_of, taking, text, whole
from bigfleet_dashboard.whatif.choices import Choices
from bigfleet_dashboard.whatif.service import WhatIf

_MOST_ROWS: Final = 1_000
_MOST_BODY: Final = 64 * 1024
_MOST_DEPTH: Final = 8
"""Levels of lists and objects in a request; the deepest that makes sense has three."""
_TOO_DEEP: Final = f"the request is nested deeper than {_MOST_DEPTH} levels"
_DEMO_SECONDS: Final = 5.0
_OF_A_CLASS: Final = ("shard", "zone", "instance_type", "capacity_type")
_VERDICTS: Final = ("met", "unmet")
_PAGE: Final = ("offset", "limit")
QUERIES: Final[Mapping[str, tuple[str, ...]]] = {
    "/history": ("since",),
    "/machines": ("state", "cluster", *_OF_A_CLASS, "q", *_PAGE),
    "/needs": ("cluster", "shard", "class", "reason", "verdict", "q", "sort", *_PAGE),
    "/decisions": ("kind", "cluster", "q", "limit"),
}
"""What the query of an address may say; of the others, nothing."""


class Api:
    """Everything below /api/v1."""

    def __init__(
        self, fleet: Fleet, news: EventStreams, whatif: WhatIf, demo_socket: Path | None
    ) -> None:
        self._fleet, self._news, self._whatif = fleet, news, whatif
        self._demo_socket = demo_socket

    def routes(self) -> list[BaseRoute]:
        """Addresses and who answers them."""
        table: dict[str, Handler] = {
            "": self.index,
            "/overview": self.overview,
            "/history": self.history,
            "/map": self.map,
            "/machines": self.machines,
            "/machines/{id:path}": self.machine,
            "/shards": self.shards,
            "/shards/{id}": self.shard,
            "/clusters": self.clusters,
            "/clusters/{id}": self.cluster,
            "/needs": self.needs,
            "/needs/{key}": self.need,
            "/decisions": self.decisions,
            "/topology": self.topology,
            "/providers": self.providers,
            "/cost": self.cost,
            "/sources": self.sources,
            "/events": self.events,
        }
        requested = [(path, handler, ["GET"]) for path, handler in table.items()]
        requested.append(("/whatif", self.ask_whatif, ["POST"]))
        requested.append(("/whatif", self.whatif_choices, ["GET"]))
        requested.append(("/demo", self.demo, ["GET", "POST"]))
        return [
            Route(f"/api/v1{path}", taking(QUERIES.get(path, ()), handler), methods=methods)
            for path, handler, methods in requested
        ]

    async def index(self, request: Request) -> Response:
        """What there is."""
        return answer(
            request,
            {
                "version": __version__,
                "paths": sorted({str(getattr(r, "path", "")) for r in self.routes()}),
                "documentation": "docs/guides/dashboard.md",
            },
        )

    async def overview(self, request: Request) -> Response:
        """The numbers at the top."""
        return answer(request, views.overview(self._fleet))

    async def history(self, request: Request) -> Response:
        """Points for charts."""
        return answer(request, self._fleet.history.document(whole(request, "since", 0, 2**40)))

    async def map(self, request: Request) -> Response:
        """All machines as the map draws them."""
        document = {"version": self._fleet.machines_version, **self._fleet.map.document()}
        return answer(request, document)

    async def machines(self, request: Request) -> Response:
        """Machines that pass a filter, in the order of the map."""
        fleet_map = self._fleet.map
        left = np.ones(len(fleet_map), np.bool_)
        state = one_of(request, "state", STATES[1:])
        if state:
            left &= fleet_map.state == STATES.index(state)
        cluster = text(request, "cluster")
        if cluster:
            left &= fleet_map.cluster == self._fleet.names.find_cluster(cluster)
        classes = fleet_map.classes
        wanted = [text(request, name) for name in _OF_A_CLASS]
        if any(wanted) and len(fleet_map):
            reply = [(c.shard, c.zone, c.instance_type, CAPACITY[c.capacity_type]) for c in classes]
            fits = [all(w in ("", t) for w, t in zip(wanted, each, strict=True)) for each in reply]
            left &= np.array(fits, np.bool_)[fleet_map.cls]
        rows = np.flatnonzero(left)
        words = text(request, "q").lower()
        if words:
            tables = fleet_map.tables
            rows = np.array(
                [
                    row
                    for row in rows.tolist()
                    if words in tables[fleet_map.table[row]].ids[fleet_map.row[row]].lower()
                ],
                np.int64,
            )
        offset, limit = whole(request, "offset", 0, 2**31), whole(request, "limit", 100, _MOST_ROWS)
        shown = [fleet_map.machine(int(row)) for row in rows[offset : offset + limit]]
        return answer(request, {"total": len(rows), "offset": offset, "machines": shown})

    async def machine(self, request: Request) -> Response:
        """One machine by id, or by its place in the map as `@12`."""
        fleet_map, requested = self._fleet.map, str(request.path_params["id"])
        index = fleet_map.find(requested)
        if requested.startswith("@") and requested[1:].isdecimal():
            index = int(requested[1:])
        if not 0 <= index < len(fleet_map):
            raise NotFoundError(f"there is no machine {requested!r}")
        found = fleet_map.machine(index)
        entries = self._fleet.decisions.newest(20, words=str(found["id"]).lower())
        return answer(request, {**found, "decisions": [e.document() for e in entries]})

    async def shards(self, request: Request) -> Response:
        """Every shard."""
        rows = [views.shard_row(s, self._fleet) for _, s in sorted(self._fleet.shards.items())]
        return answer(request, {"total": len(rows), "shards": rows})

    async def shard(self, request: Request) -> Response:
        """One shard."""
        requested = request.path_params["id"]
        found = self._fleet.shards.get(requested)
        if found is None:
            raise NotFoundError(f"there is no shard {requested!r}")
        return answer(request, views.shard_document(found, self._fleet))

    async def clusters(self, request: Request) -> Response:
        """Every cluster."""
        rows = views.clusters(self._fleet)
        return answer(request, {"total": len(rows), "clusters": rows})

    async def cluster(self, request: Request) -> Response:
        """One cluster."""
        document = views.cluster_document(self._fleet, request.path_params["id"])
        if document is None:
            raise NotFoundError(f"there is no cluster {request.path_params['id']!r}")
        return answer(request, document)

    async def needs(self, request: Request) -> Response:
        """Needs that pass a filter."""
        sort = one_of(request, "sort", SORTS)
        wanted = NeedFilter(
            text(request, "cluster"), text(request, "shard"), one_of(request, "class", CLASSES),
            text(request, "reason"), one_of(request, "verdict", _VERDICTS),
            text(request, "q").lower(),
        )  # fmt: skip
        rows = select(list(self._fleet.needs()), wanted, sort)
        offset, limit = whole(request, "offset", 0, 2**31), whole(request, "limit", 100, _MOST_ROWS)
        shown = [row.document() for row in rows[offset : offset + limit]]
        return answer(request, {"total": len(rows), "offset": offset, "needs": shown})

    async def need(self, request: Request) -> Response:
        """One need in words."""
        row = self._fleet.need(request.path_params["key"])
        if row is None:
            raise NotFoundError("this need is gone: its cluster no longer asks for it")
        return answer(request, {**row.document(), **drawer(row).document()})

    async def decisions(self, request: Request) -> Response:
        """The newest decisions."""
        limit = whole(request, "limit", 100, _MOST_ROWS)
        kind, cluster = text(request, "kind"), text(request, "cluster")
        entries = self._fleet.decisions.newest(limit, kind, cluster, text(request, "q").lower())
        document = {
            "total": len(self._fleet.decisions),
            "decisions": [e.document() for e in entries],
        }
        return answer(request, document)

    async def topology(self, request: Request) -> Response:
        """Who owns what."""
        return answer(request, topology.topology(self._fleet))

    async def providers(self, request: Request) -> Response:
        """Who supplies machines, and at what price."""
        return answer(request, topology.providers(self._fleet))

    async def cost(self, request: Request) -> Response:
        """Where the money goes."""
        return answer(request, cost_document(self._fleet.map))

    async def sources(self, request: Request) -> Response:
        """Where facts come from, and how well."""
        return answer(request, {"sources": self._fleet.sources.documents()})

    async def events(self, request: Request) -> Response:
        """News until the page is closed."""
        page = self._news.open()

        async def stream() -> AsyncIterator[bytes]:
            try:
                async for event in page.stream():
                    yield event
            finally:
                self._news.close(page)

        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream(), headers=headers, media_type="text/event-stream")

    async def whatif_choices(self, request: Request) -> Response:
        """What a change may name."""
        return answer(request, Choices.of(self._fleet).document())

    async def ask_whatif(self, request: Request) -> Response:
        """Two plans side by side."""
        requested = await _body(request, ("shard", "changes"))
        changes = requested.get("changes", [])
        if not isinstance(changes, list):
            raise BadRequestError("changes: give a list")
        return answer(request, await self._whatif.ask(str(requested.get("shard", "")), changes))

    async def demo(self, request: Request) -> Response:
        """Scenarios of a demo, and playing one; 404 for a fleet that is not a demo."""
        if self._demo_socket is None:
            raise NotFoundError("this fleet is not a demo: `bigfleet demo` starts one")
        ask: dict[str, object] = {"do": "list"}
        if request.method == "POST":
            ask = {"do": "play", "name": str((await _body(request, ("name",))).get("name", ""))}
        reply = await _ask_demo(self._demo_socket, ask)
        if "error" in reply:
            raise BadRequestError(str(reply["error"]))
        return answer(request, reply)


async def _body(request: Request, known: tuple[str, ...]) -> dict[str, Any]:
    data = b""
    async for piece in request.stream():
        data += piece
        if len(data) > _MOST_BODY:
            raise BadRequestError(f"the request is larger than {_MOST_BODY} bytes")
    try:
        document = json.loads(data)
    except ValueError as error:
        raise BadRequestError(f"the request is not JSON: {error}") from None
    except RecursionError:
        raise BadRequestError(_TOO_DEEP) from None
    if _is_deeper(document, _MOST_DEPTH):
        raise BadRequestError(_TOO_DEEP)
    if not isinstance(document, dict):
        raise BadRequestError("the request is not an object")
    for name in document:
        if name not in known:
            raise BadRequestError(
                f"{name[:60]!r} is not part of this request: use {', '.join(known)}"
            )
    return document


def _is_deeper(document: object, levels: int) -> bool:
    """Whether lists and objects are nested deeper than this; looks no deeper than that itself."""
    layer = [document]
    for _ in range(levels + 1):
        nested = [each for each in layer if isinstance(each, dict | list)]
        if not nested:
            return False
        layer = [part for each in nested for part in _parts(each)]
    return True


def _parts(document: dict[str, object] | list[object]) -> Iterable[object]:
    return document.values() if isinstance(document, dict) else document


async def _ask_demo(path: Path, request: dict[str, object]) -> dict[str, Any]:
    try:
        async with asyncio.timeout(_DEMO_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                writer.write(json.dumps(request).encode() + b"\n")
                reply = json.loads(await reader.readline())
            finally:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()
    except (OSError, ValueError) as error:
        raise UnavailableError(f"the demo does not answer at {path}: {error}") from error
    return dict(reply)
