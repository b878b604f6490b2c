"""/metrics, probes and debug pages, on threads of their own: no scrape holds the event loop.

A page is a function from the query to an answer. What is ready and what there is to debug is told
by the component; addresses and the protocol are seen to here.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qs, urlsplit

from prometheus_client import CollectorRegistry

from bigfleet.observe.cycles import CycleRing
from bigfleet.observe.page import MetricsPage
from bigfleet.observe.scraping import Courtesy, RightOfWay

Query = Mapping[str, list[str]]
_IDLE_SECONDS: Final = 10.0
_log = logging.getLogger(__name__)


class HttpError(OSError):
    """The pages cannot be served where they were asked for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer."""

    body: bytes
    kind: str = "text/plain; charset=utf-8"
    status: int = 200


Page = Callable[[Query], Answer]


@dataclass(frozen=True, slots=True)
class Pages:
    """What a component shows. `readiness` gives an empty text, or the reason for 503."""

    registry: CollectorRegistry
    readiness: Callable[[], str]
    more: Mapping[str, Page] = field(default_factory=dict)
    way: RightOfWay = field(default_factory=RightOfWay)
    """Whom /metrics waits for."""


def debug_pages(
    cycles: CycleRing, loop: asyncio.AbstractEventLoop | None = None
) -> dict[str, Page]:
    """The pages for whoever looks into a shard that is slow or stands still."""
    return {
        "/debug/cycles": lambda query: _cycles(cycles, query),
        "/debug/stacks": lambda _query: Answer(stacks(loop).encode()),
    }


class HttpServer:
    """Serves pages at `host:port` or `:port`; `flag` is named when that cannot be."""

    def __init__(self, address: str, pages: Pages, flag: str = "--metrics-addr") -> None:
        host, port = _split(address, flag)
        try:
            self._server = _listen(host, port, _handler(pages))
        except OSError as error:
            raise HttpError(
                f"cannot listen on {address}: {error.strerror or error}; choose another {flag}, "
                "or 0 for none"
            ) from error
        shown = f"[{host}]" if ":" in host else host or "127.0.0.1"
        self.address = f"{shown}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)
        self._thread.start()
        _log.info("metrics serving", extra={"addr": self.address})

    @classmethod
    def start(cls, address: str, pages: Pages, flag: str = "--metrics-addr") -> HttpServer | None:
        """A running server, or None where the address is `0` or empty: switched off."""
        return None if address in ("", "0") else cls(address, pages, flag)

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def stacks(loop: asyncio.AbstractEventLoop | None = None) -> str:
    """Where every thread is, and every task of an event loop."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():
        parts.append(f"thread {names.get(ident, ident)}\n")
        parts += traceback.format_stack(frame)
    for task in asyncio.all_tasks(loop) if loop is not None else ():
        parts.append(f"task {task.get_name()}\n")
        for frame in task.get_stack(limit=20):
            parts += traceback.format_stack(frame, limit=1)
    return "".join(parts)


def _cycles(cycles: CycleRing, query: Query) -> Answer:
    asked = query.get("since", ["0"])[-1]
    try:
        since = int(asked)
    except ValueError:
        return Answer(f"since={asked!r} is no number of a cycle\n".encode(), status=400)
    lines = "".join(f"{record.line()}\n" for record in cycles.since(since))
    return Answer(lines.encode(), "application/x-ndjson")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that hangs up in the middle is no news; a page that fails is."""
        _log.debug("page not delivered", extra={"client": client_address}, exc_info=True)


class _DualStackServer(_Server):
    address_family = socket.AF_INET6

    def server_bind(self) -> None:
        """Take plain IPv4 connections as well."""
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


def _listen(host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> _Server:
    if host == "" and socket.has_dualstack_ipv6():
        return _DualStackServer(("::", port), handler)
    return (_DualStackServer if ":" in host else _Server)((host, port), handler)


def _split(address: str, flag: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise HttpError(
            f"{address!r} is not an address: write {flag} host:port, :port, or 0 for none"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def _handler(pages: Pages) -> type[BaseHTTPRequestHandler]:
    known = ("/metrics", "/healthz", "/readyz", *pages.more)
    metrics = MetricsPage(pages.registry)

    class Handler(BaseHTTPRequestHandler):
        """The pages of one component."""

        timeout = _IDLE_SECONDS
        server_version = "bigfleet"
        sys_version = ""

        def do_GET(self) -> None:
            """Answer one request."""
            url = urlsplit(self.path)
            answer = self._page(url.path, parse_qs(url.query))
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        do_HEAD = do_GET  # noqa: N815 - the library looks for this name

        def _page(self, path: str, query: Query) -> Answer:
            if path == "/metrics":
                return Answer(*metrics.write(self.headers.get("Accept", ""), Courtesy(pages.way)))
            if path == "/healthz":
                return Answer(b"ok\n")
            if path == "/readyz":
                reason = " ".join(pages.readiness().split())
                return Answer(f"{reason or 'ok'}\n".encode(), status=503 if reason else 200)
            if path in pages.more:
                return pages.more[path](query)
            return Answer(f"try {', '.join(known)}\n".encode(), status=404)

        def log_message(self, format: str, *args: object) -> None:
            """Probes come every few seconds; nobody wants them in the log."""

    return Handler
