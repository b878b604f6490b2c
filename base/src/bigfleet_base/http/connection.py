"""One HTTP connection: bytes to a request, a request to its route, a response to bytes.

h11 knows the protocol; this module decides how long each step may take and how much a client may
send. A connection carries one request and is closed after its response, so an open connection is
either waiting for its request or being answered. Runs on the server's thread.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http.client import responses
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

import h11

from bigfleet_base.http.connections import ConnectionTable
from bigfleet_base.http.limits import HttpLimits
from bigfleet_base.http.messages import Request, Response, Route, text

HEAD_BYTES: Final = 16 * 1024
"""The largest request line with its headers."""
QUERY_FIELDS: Final = 100
LINGER_SECONDS: Final = 1.0
"""For a refused client to stop sending: closing at once would reset the connection and lose the
response."""
_log = logging.getLogger(__name__)

Respond = Callable[[Response], None]


@dataclass(frozen=True, slots=True)
class Site:
    """What all connections of a server share."""

    routes: Mapping[str, Route]
    limits: HttpLimits
    table: ConnectionTable
    run: Callable[[Route, Request, Respond], None]
    """Runs a handler, then calls the function with its response on the server's thread."""


class HttpConnection(asyncio.Protocol):
    """The server's end of one connection."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._h11 = h11.Connection(h11.SERVER, HEAD_BYTES)
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._request: Request | None = None
        self._body = bytearray()
        self._is_reading = True
        self._is_evicted = False
        self.opening: asyncio.Task[None] | None = None
        """Until the connection is made, which takes a handshake where it is TLS."""
        site.table.waits(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client has this long to send its whole request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._is_evicted:
            transport.abort()
            return
        self._within(self._site.limits.request)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._within(None)
        self._transport = None
        self._site.table.closed(self)

    def eof_received(self) -> bool:
        """A client may close its half and still read the response."""
        if self._is_reading:
            self.data_received(b"")
        return not self._is_reading and self._request is not None

    def data_received(self, data: bytes) -> None:
        """A piece of the request; what comes after the request is dropped."""
        if not self._is_reading:
            return
        try:
            self._h11.receive_data(data)
            self._read()
        except h11.RemoteProtocolError as error:
            self._refuse(text(f"bad request: {error}"[:200], error.error_status_hint))

    def evict(self) -> None:
        """Close without a response."""
        self._is_evicted = True
        if self._transport is not None:
            self._transport.abort()
        elif self.opening is not None:
            self.opening.cancel()

    def _read(self) -> None:
        while self._is_reading:
            event = self._h11.next_event()
            if isinstance(event, h11.Request):
                refusal = self._begin(event)
                if refusal is not None:
                    self._refuse(refusal)
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > self._site.limits.body_bytes:
                    self._refuse(self._too_large())
            elif isinstance(event, h11.EndOfMessage):
                self._answer()
            elif isinstance(event, h11.ConnectionClosed):
                self._close()
            else:
                return

    def _begin(self, event: h11.Request) -> Response | None:
        """The head of a request; a response where the body need not be read."""
        try:
            request = _request_of(event, self._transport)
        except ValueError as error:
            return text(f"bad request: {error}"[:200], 400)
        self._request = request
        route = self._site.routes.get(request.path)
        if route is None:
            return text(f"try {', '.join(self._site.routes)}", 404)
        if not route.allows(request.method):
            allowed = ", ".join(route.methods)
            return replace(text(f"{request.path} takes {allowed}", 405), headers={"Allow": allowed})
        if int(request.headers.get("content-length", "0")) > self._site.limits.body_bytes:
            return self._too_large()
        refusal = None if route.guard is None else _guarded(route, request)
        if refusal is None and self._h11.they_are_waiting_for_100_continue:
            self._send(h11.InformationalResponse(status_code=100, headers=[]))
        return refusal

    def _too_large(self) -> Response:
        return text(f"the body is larger than {self._site.limits.body_bytes} bytes", 413)

    def _answer(self) -> None:
        """The request is complete."""
        assert self._request is not None
        self._is_reading = False
        self._within(None)
        self._site.table.answers(self)
        request = replace(self._request, body=bytes(self._body))
        self._site.run(self._site.routes[request.path], request, self._respond)

    def _respond(self, response: Response) -> None:
        self._write(response)
        # The client has `write` seconds to take it; the transport closes when it has.
        self._close()

    def _refuse(self, response: Response) -> None:
        """Answer although the client may still be sending."""
        self._is_reading = False
        self._write(response)
        if self._transport is None or not self._transport.can_write_eof():
            self._close()
            return
        self._transport.write_eof()
        self._within(LINGER_SECONDS)

    def _write(self, response: Response) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._within(self._site.limits.write)
        headers = [
            ("Content-Type", response.content_type),
            ("Content-Length", str(len(response.body))),
            ("Connection", "close"),
            *response.headers.items(),
        ]
        parts: list[h11.Event] = [
            h11.Response(
                status_code=response.status,
                headers=headers,
                reason=responses.get(response.status, ""),
            )
        ]
        if response.body and (self._request is None or self._request.method != "HEAD"):
            parts.append(h11.Data(data=response.body))
        self._send(*parts, h11.EndOfMessage())

    def _send(self, *events: h11.Event) -> None:
        data = b"".join(self._h11.send(event) or b"" for event in events)
        if data and self._transport is not None:
            self._transport.write(data)

    def _close(self) -> None:
        self._is_reading = False
        if self._transport is not None:
            self._transport.close()

    def _within(self, seconds: float | None) -> None:
        """Cut the connection unless its present step ends in time."""
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = None if seconds is None else loop.call_later(seconds, self.evict)


def _guarded(route: Route, request: Request) -> Response | None:
    assert route.guard is not None
    try:
        return route.guard(request)
    except Exception:  # noqa: BLE001 - what fails lets no request in
        _log.exception("the guard of an HTTP route failed", extra={"path": request.path})
        return text("this page is broken; the log says why", 500)


def _request_of(event: h11.Request, transport: asyncio.Transport | None) -> Request:
    """The head as a handler sees it; a ValueError says what is wrong with it."""
    target = urlsplit(event.target.decode("ascii"))
    query = parse_qs(target.query, max_num_fields=QUERY_FIELDS) if target.query else {}
    headers = {name.decode("ascii"): value.decode("latin-1") for name, value in event.headers}
    peer = transport.get_extra_info("peername") if transport is not None else None
    tls = transport.get_extra_info("ssl_object") if transport is not None else None
    certificate = tls.getpeercert(binary_form=True) if isinstance(tls, ssl.SSLObject) else None
    return Request(
        event.method.decode("ascii"),
        unquote(target.path),
        query,
        headers,
        client=f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "",
        client_certificate=certificate or b"",
    )
