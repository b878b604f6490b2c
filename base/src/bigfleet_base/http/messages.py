"""What a handler gets, what it gives back, and the route that leads to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """One request. The body is empty where a guard or the method has none."""

    method: str
    path: str
    query: Mapping[str, list[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """By lower-case name; the last one of several with a name."""
    body: bytes = b""
    client: str = ""
    """`host:port` of the other end."""
    client_certificate: bytes = b""
    """DER, where the connection is TLS and the client showed one."""


@dataclass(frozen=True, slots=True)
class Response:
    """One response."""

    body: bytes = b""
    content_type: str = TEXT
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def text(line: str, status: int = 200) -> Response:
    """A response of one line."""
    return Response(f"{line}\n".encode(), status=status)


Handler = Callable[[Request], Response | Awaitable[Response]]
Guard = Callable[[Request], Response | None]


@dataclass(frozen=True, slots=True)
class Route:
    """Who answers the requests for one path."""

    handler: Handler
    methods: tuple[str, ...] = ("GET",)
    """HEAD comes with GET."""
    immediate: bool = False
    """The handler only reads memory, so it runs on the server's thread and waits for no worker."""
    guard: Guard | None = None
    """Sees head and certificate before the body is read; its response refuses the request."""

    def allows(self, method: str) -> bool:
        """Whether a request with this method may come in."""
        return method in self.methods or (method == "HEAD" and "GET" in self.methods)
