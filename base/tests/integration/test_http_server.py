"""The server over real sockets: pages, methods, handlers, addresses, TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
import trustme
from raw_http import exchange, get, post, read_to_end

from bigfleet_base.http import (
    HttpError,
    HttpLimits,
    HttpServer,
    Request,
    Response,
    Route,
    page_routes,
)


@contextmanager
def serving(
    routes: Mapping[str, Route],
    limits: HttpLimits = HttpLimits(),  # noqa: B008 - a value
    **more: object,
) -> Iterator[HttpServer]:
    """A server on a free port of loopback."""
    server = HttpServer("127.0.0.1:0", routes, limits=limits, **more)  # type: ignore[arg-type]
    try:
        yield server
    finally:
        server.close()


def echo(request: Request) -> Response:
    words = f"{request.method} {request.path} {sorted(request.query.items())}".encode()
    return Response(words + b" " + request.body)


ECHO = {"/echo": Route(echo, methods=("GET", "POST"))}


def test_a_get_reaches_its_handler_with_path_and_query() -> None:
    with serving(ECHO) as server:
        reply = get(server.address, "/echo?a=1&a=2&b=%20x")
        assert reply.status == 200
        assert reply.body == b"GET /echo [('a', ['1', '2']), ('b', [' x'])] "
        assert reply.headers["connection"] == "close"


def test_head_has_the_length_and_no_body() -> None:
    with serving(ECHO) as server:
        reply = get(server.address, "/echo", method="HEAD")
        assert (reply.status, reply.body) == (200, b"")
        assert int(reply.headers["content-length"]) > 0


def test_a_body_comes_whole_in_either_framing() -> None:
    with serving(ECHO) as server:
        assert post(server.address, "/echo", b"x" * 100_000).body.endswith(b"x" * 100_000)
        chunked = (
            b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n"
        )
        assert exchange(server.address, chunked).body.endswith(b" abcde")


def test_a_client_that_waits_for_permission_gets_it() -> None:
    with serving(ECHO) as server, socket.create_connection(_pair(server.address), 10) as client:
        client.sendall(
            b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        assert client.recv(100).startswith(b"HTTP/1.1 100")
        client.sendall(b"ok")
        assert read_to_end(client).endswith(b" ok")


@pytest.mark.parametrize("framing", ["declared", "chunked"])
def test_a_body_that_is_too_large_is_refused(framing: str) -> None:
    with serving(ECHO, HttpLimits(body_bytes=1000)) as server:
        if framing == "declared":
            reply = post(server.address, "/echo", b"x" * 1_000_000)
        else:
            head = b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            reply = exchange(server.address, head + b"3e9\r\n" + b"x" * 1001 + b"\r\n")
        assert reply.status == 413
        assert b"1000 bytes" in reply.body


def test_a_guard_refuses_before_the_body_is_read() -> None:
    bodies: list[bytes] = []

    def note(request: Request) -> Response:
        bodies.append(request.body)
        return Response(b"taken")

    def has_token(request: Request) -> Response | None:
        is_known = request.headers.get("authorization") == "Bearer t"
        return None if is_known else Response(b"who are you?\n", status=401)

    routes = {"/do": Route(note, methods=("POST",), guard=has_token)}
    with serving(routes) as server:
        assert post(server.address, "/do", b"x" * 500_000).status == 401
        assert post(server.address, "/do", b"y", Authorization="Bearer t").status == 200
        assert bodies == [b"y"]


def test_a_guard_that_fails_lets_nothing_in(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_request: Request) -> Response | None:
        raise RuntimeError("no key")

    with serving({"/do": Route(echo, methods=("POST",), guard=broken)}) as server:
        assert post(server.address, "/do", b"x").status == 500
    assert "no key" in caplog.text


def test_an_unknown_path_names_those_there_are_and_a_wrong_method_those_allowed() -> None:
    with serving(ECHO) as server:
        reply = get(server.address, "/nothing")
        assert (reply.status, reply.body) == (404, b"try /echo\n")
        reply = get(server.address, "/echo", method="DELETE")
        assert (reply.status, reply.headers["allow"]) == (405, "GET, POST")


async def test_a_coroutine_handler_runs_on_the_loop_that_made_the_server() -> None:
    loop = asyncio.get_running_loop()

    async def where(_request: Request) -> Response:
        await asyncio.sleep(0)
        return Response(str(asyncio.get_running_loop() is loop).encode())

    with serving({"/where": Route(where)}) as server:
        reply = await asyncio.to_thread(get, server.address, "/where")
        assert reply.body == b"True"


async def test_a_coroutine_handler_that_takes_too_long_is_cancelled() -> None:
    ended: list[str] = []

    async def hang(_request: Request) -> Response:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        return Response()

    with serving({"/hang": Route(hang)}, HttpLimits(handler=0.05)) as server:
        reply = await asyncio.to_thread(get, server.address, "/hang")
        assert reply.status == 503
    assert ended == ["cancelled"]


def test_a_page_that_fails_is_logged_and_the_others_are_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_request: Request) -> Response:
        raise RuntimeError("out of paper")

    with serving({"/broken": Route(broken), **ECHO}) as server:
        assert get(server.address, "/broken").status == 500
        assert get(server.address, "/echo").status == 200
    assert "out of paper" in caplog.text


def test_probes_do_not_wait_for_pages_that_hang_and_neither_does_the_end() -> None:
    release, began = threading.Event(), threading.Semaphore(0)

    def hang(_request: Request) -> Response:
        began.release()
        release.wait(30)
        return Response()

    routes = {"/hang": Route(hang), **page_routes(lambda _accept: (b"", "text/plain"), str)}
    with serving(routes, HttpLimits(workers=2)) as server:
        clients = [socket.create_connection(_pair(server.address), 10) for _ in range(3)]
        for client in clients:
            client.sendall(b"GET /hang HTTP/1.1\r\nHost: x\r\n\r\n")
        assert began.acquire(timeout=10)
        assert began.acquire(timeout=10)
        assert get(server.address, "/healthz").body == b"ok\n"
    for client in clients:
        client.close()
    release.set()


def test_readiness_is_one_line_and_alive_is_not_ready() -> None:
    reason = ["waiting for the first List\nof provider aws"]
    routes = page_routes(lambda accept: (accept.encode(), "text/x"), lambda: reason[0])
    with serving(routes) as server:
        assert get(server.address, "/healthz").body == b"ok\n"
        reply = get(server.address, "/readyz")
        assert (reply.status, reply.body) == (503, b"waiting for the first List of provider aws\n")
        reason[0] = ""
        assert get(server.address, "/readyz").status == 200
        reply = get(server.address, "/metrics", Accept="a/b")
        assert (reply.body, reply.headers["content-type"]) == (b"a/b", "text/x")


@pytest.mark.parametrize("address", ["8780", "host:port", ":99999"])
def test_a_wrong_address_is_named(address: str) -> None:
    with pytest.raises(HttpError, match="is not an address"):
        HttpServer(address, ECHO)


def test_a_taken_port_is_named_with_its_flag() -> None:
    with serving(ECHO) as server, pytest.raises(HttpError) as refused:
        HttpServer(server.address, ECHO, "--pages")
    assert server.address in str(refused.value)
    assert "--pages" in str(refused.value)


def test_a_port_without_a_host_is_open_to_both_families_and_says_so() -> None:
    server = HttpServer(":0", ECHO)
    try:
        host, _, port = server.address.rpartition(":")
        assert host == "[::]"
        assert get(f"127.0.0.1:{port}", "/echo").status == 200
        assert get(f"[::1]:{port}", "/echo").status == 200
    finally:
        server.close()


def test_a_new_certificate_counts_from_the_next_connection_on() -> None:
    first, second = _tls(), _tls()
    in_use = [first[0]]
    with serving(ECHO, tls=lambda: in_use[0]) as server:
        assert exchange(server.address, _GET, first[1]).status == 200
        in_use[0] = second[0]
        assert exchange(server.address, _GET, second[1]).status == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            exchange(server.address, _GET, first[1])


def test_a_client_that_speaks_no_tls_is_cut_and_others_are_served() -> None:
    server_side, client_side = _tls()
    with serving(ECHO, HttpLimits(request=0.3), tls=lambda: server_side) as server:
        with socket.create_connection(_pair(server.address), 10) as silent:
            assert exchange(server.address, _GET, client_side).status == 200
            assert silent.recv(1) == b""
        assert exchange(server.address, _GET, client_side).status == 200


_GET = b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n"


def _tls() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return server, client


def _pair(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
