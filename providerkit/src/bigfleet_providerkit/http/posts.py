"""Authenticated POST routes on the port of /metrics, for notices that a cloud pushes.

A caller shows a bearer token, compared by hash in constant time before the body is read. The body
is one JSON object; what the handler returns is the answer.
"""

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping

from bigfleet_base.http import Request, Response, Route

Post = Callable[[Mapping[str, object]], Awaitable[Mapping[str, object]]]
JSON = "application/json"

__all__ = ["Post", "Route", "post_route"]


def post_route(token: str, handler: Post) -> Route:
    """A route for callers with this token."""
    wanted = hashlib.sha256(token.encode()).digest()

    def guard(request: Request) -> Response | None:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        given = hashlib.sha256(shown.strip().encode()).digest()
        if scheme.lower() == "bearer" and hmac.compare_digest(given, wanted):
            return None
        return _answer({"error": "give the bearer token of this route"}, 401)

    async def handle(request: Request) -> Response:
        try:
            body = json.loads(request.body)
            if not isinstance(body, dict):
                raise ValueError("send one JSON object")
            return _answer(await handler(body), 200)
        except ValueError as error:
            return _answer({"error": str(error)}, 400)

    return Route(handle, methods=("POST",), guard=guard)


def _answer(body: Mapping[str, object], status: int) -> Response:
    return Response(json.dumps(dict(body)).encode() + b"\n", JSON, status)
