"""What clients cannot do to the server, whatever they send or do not send."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from raw_http import connect, exchange, get, read_to_end

from bigfleet_base.http import HttpLimits, HttpServer, Request, Response, Route, page_routes

PROBES = page_routes(lambda _accept: (b"", "text/plain"), str)
_log = logging.getLogger(__name__)


@pytest.fixture
def impatient() -> Iterator[HttpServer]:
    """A server that waits 0.3 s for a request and as long for a client to take its response."""
    routes = {**PROBES, "/large": Route(lambda _request: Response(b"x" * 50_000_000))}
    server = HttpServer("127.0.0.1:0", routes, limits=HttpLimits(request=0.3, write=0.3))
    yield server
    server.close()


def test_probes_are_answered_beside_a_thousand_idle_connections() -> None:
    server = HttpServer("127.0.0.1:0", PROBES)
    with ExitStack() as stack:
        stack.callback(server.close)
        for _ in range(1000):
            stack.enter_context(connect(server.address))
        begun = time.monotonic()
        for path in ("/healthz", "/readyz", "/metrics"):
            assert get(server.address, path).status == 200
        assert time.monotonic() - begun < 1.0
        assert server.connections <= HttpLimits().connections


def test_a_connection_that_sends_nothing_is_closed(impatient: HttpServer) -> None:
    with connect(impatient.address) as client:
        assert read_to_end(client) == b""


def test_a_byte_now_and_then_does_not_keep_a_connection(impatient: HttpServer) -> None:
    with connect(impatient.address) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\n")
        client.settimeout(0.02)
        begun, is_open = time.monotonic(), True
        while is_open and time.monotonic() - begun < 10:
            try:
                client.sendall(b"x")
                is_open = client.recv(1) != b""
            except TimeoutError:
                continue
            except (ConnectionResetError, BrokenPipeError):
                is_open = False
        assert not is_open


def test_a_body_that_never_comes_is_not_waited_for() -> None:
    routes = {"/take": Route(lambda _request: Response(), methods=("POST",))}
    server = HttpServer("127.0.0.1:0", routes, limits=HttpLimits(request=0.3))
    try:
        reply = b"POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"
        with connect(server.address) as client:
            client.sendall(reply)
            assert read_to_end(client) == b""
    finally:
        server.close()


def test_a_client_that_does_not_read_its_response_is_cut(impatient: HttpServer) -> None:
    with connect(impatient.address) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        deadline = time.monotonic() + 10
        assert client.recv(1, socket.MSG_PEEK) == b"H"
        while impatient.connections and time.monotonic() < deadline:
            get(impatient.address, "/healthz")
        assert impatient.connections <= 1
        assert len(read_to_end(client)) < 50_000_000


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x00" * 100 + b"\r\n\r\n",
        b"GET /healthz\r\nHTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nA: \x00b\r\nHost: x\r\n\r\n",
        b"GET http://[::1/healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /healthz?" + b"a=1&" * 500 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 300 + b"\r\n\r\n",
    ],
    ids=["nul", "two lines", "negative", "two lengths", "nul header", "address", "fields", "tls"],
)  # fmt: skip
def test_garbage_is_a_bad_request(impatient: HttpServer, request_bytes: bytes) -> None:
    reply = exchange(impatient.address, request_bytes)
    assert reply.status == 400
    assert len(reply.body) <= 201


def test_a_head_without_an_end_is_refused_at_its_limit(impatient: HttpServer) -> None:
    endless = b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 20_000
    assert exchange(impatient.address, endless).status == 431
    assert get(impatient.address, "/healthz").status == 200


def test_a_path_cannot_leave_the_table_of_routes() -> None:
    server = HttpServer("127.0.0.1:0", PROBES)
    try:
        for path in ("/../../etc/passwd", "/%2e%2e/etc/passwd", "/metrics/../healthz", "/" * 9000):
            assert get(server.address, path).status == 404
    finally:
        server.close()


def test_a_new_connection_is_refused_only_when_every_other_is_being_answered() -> None:
    release, began = threading.Event(), threading.Event()

    def hang(_request: Request) -> Response:
        began.set()
        release.wait(30)
        return Response(b"done")

    server = HttpServer(
        "127.0.0.1:0", {"/hang": Route(hang), **PROBES}, limits=HttpLimits(connections=1)
    )
    try:
        with connect(server.address) as busy:
            busy.sendall(b"GET /hang HTTP/1.1\r\nHost: x\r\n\r\n")
            assert began.wait(10)
            with connect(server.address) as refused:
                assert read_to_end(refused) == b""
            release.set()
            assert read_to_end(busy).endswith(b"done")
        assert get(server.address, "/healthz").status == 200
    finally:
        server.close()


def test_a_flood_of_connections_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    server = HttpServer("127.0.0.1:0", PROBES, limits=HttpLimits(connections=4))
    try:
        with ExitStack() as stack, caplog.at_level(logging.WARNING):
            for _ in range(100):
                stack.enter_context(connect(server.address))
            assert get(server.address, "/healthz").status == 200
            assert server.connections <= 4
    finally:
        server.close()
    assert len([r for r in caplog.records if r.levelno >= logging.WARNING]) == 1
