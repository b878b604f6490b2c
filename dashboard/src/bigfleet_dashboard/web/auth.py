"""Who may send requests, under which host name, and what every answer carries.

The host name is checked before anything else; `bigfleet_dashboard.hosts` says why.
Where a header is configured, a proxy in front has found out who asks; it is believed from the
proxy's network alone. The page loads nothing from anywhere else, may not be framed, and a
request that changes something (demo, what-if) has to come from the page itself.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bigfleet_dashboard.config import Auth
from bigfleet_dashboard.errors import ForbiddenError, RequestError, UnauthenticatedError
from bigfleet_dashboard.hosts import AllowedHosts
from bigfleet_dashboard.web.responses import refusal

OPEN: Final = frozenset({"/healthz", "/readyz"})
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """In front of everything."""

    def __init__(self, app: ASGIApp, auth: Auth, hosts: AllowedHosts) -> None:
        self._app, self._auth, self._hosts = app, auth, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or say why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check_host(request)
            scope["state"] = {**scope.get("state", {}), "user": self._who(request)}
            _refuse_foreign(request)
        except RequestError as error:
            await refusal(request, str(error), error.status)(scope, receive, sending)
            return
        await self._app(scope, receive, sending)

    def _check_host(self, request: Request) -> None:
        headers, server = request.headers, request.scope.get("server")
        self._hosts.check(
            headers.getlist("host"),
            headers.getlist("x-forwarded-host"),
            str(server[0]) if server else "",
        )

    def _who(self, request: Request) -> str:
        if not self._auth.header or request.url.path in OPEN:
            return ""
        peer = request.client.host if request.client else ""
        try:
            near = any(ipaddress.ip_address(peer) in net for net in self._auth.proxies)
        except ValueError:
            near = False
        if not near:
            raise ForbiddenError(f"{peer or 'this peer'} is not a proxy named with --auth-proxy")
        user = request.headers.get(self._auth.header, "").strip()
        if not user:
            raise UnauthenticatedError(f"the proxy did not say who asks ({self._auth.header})")
        return user


def _refuse_foreign(request: Request) -> None:
    """Refuse a request of another site's page that would change something."""
    if request.method in ("GET", "HEAD"):
        return
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise ForbiddenError("send application/json")
    origin = request.headers.get("origin", "")
    if origin and not _same(origin, request.headers):
        raise ForbiddenError(f"{origin} is not where this page comes from")


def _same(origin: str, headers: Headers) -> bool:
    named = headers.get("x-forwarded-host") or headers.get("host", "")
    return origin.partition("://")[2] == named
