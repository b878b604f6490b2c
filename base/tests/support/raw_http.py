"""A client that writes bytes, as a hostile or broken one does."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reply:
    """A response as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def connect(address: str, timeout: float = 10.0) -> socket.socket:
    """A connection to `host:port`."""
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), timeout)


def read_to_end(client: socket.socket) -> bytes:
    """Everything until the server closes; a reset is an end too."""
    parts = []
    try:
        while part := client.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def parse(data: bytes) -> Reply:
    """A whole response."""
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines[1:])
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    return Reply(int(lines[0].split()[1]), headers, body)


def exchange(
    address: str, request: bytes, tls: ssl.SSLContext | None = None, timeout: float = 10.0
) -> Reply:
    """Send bytes, read the response."""
    with ExitStack() as stack:
        client = stack.enter_context(connect(address, timeout))
        if tls is not None:
            client = stack.enter_context(tls.wrap_socket(client, server_hostname="127.0.0.1"))
        client.sendall(request)
        return parse(read_to_end(client))


def get(address: str, path: str, method: str = "GET", **headers: str) -> Reply:
    """One request without a body."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return exchange(address, f"{method} {path} HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode())


def post(address: str, path: str, body: bytes, **headers: str) -> Reply:
    """One request with a body."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{lines}\r\n"
    return exchange(address, head.encode() + body)
