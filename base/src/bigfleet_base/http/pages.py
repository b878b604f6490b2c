"""The pages that every process has: /metrics, /healthz and /readyz."""

from __future__ import annotations

from collections.abc import Callable

from bigfleet_base.http.messages import Request, Response, Route, text

Metrics = Callable[[str], tuple[bytes, str]]
"""Writes the page in a form that this Accept header takes; gives the text and its type."""
Readiness = Callable[[], str]
"""An empty text, or why the process is not ready. Called on the server's thread."""


def page_routes(metrics: Metrics, readiness: Readiness) -> dict[str, Route]:
    """The routes of these pages. Probes wait for no worker thread."""

    def write(request: Request) -> Response:
        return Response(*metrics(request.headers.get("accept", "")))

    def ready(_request: Request) -> Response:
        reason = " ".join(readiness().split())
        return text(reason or "ok", 503 if reason else 200)

    return {
        "/metrics": Route(write),
        "/healthz": Route(lambda _request: text("ok"), immediate=True),
        "/readyz": Route(ready, immediate=True),
    }
