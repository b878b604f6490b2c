"""The HTTP pages of a component: /metrics and probes, and debug pages for a shard.

The server is `bigfleet_base.http`; it runs on a thread of its own, so no scrape holds the event
loop. A scrape waits for the end of a running cycle (`scrape_throttle`).
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry

from bigfleet.observe.cycles import CycleRing
from bigfleet.observe.page import MetricsPage
from bigfleet.observe.scrape_throttle import CycleLock, ScrapeThrottle
from bigfleet_base.http import HttpServer, Request, Response, Route, page_routes

_log = logging.getLogger(__name__)


def serve_pages(
    address: str, routes: Mapping[str, Route], flag: str = "--metrics-addr"
) -> HttpServer | None:
    """A running server, or None where the address is `0` or empty: switched off."""
    if address in ("", "0"):
        return None
    server = HttpServer(address, routes, flag)
    _log.info("metrics serving", extra={"addr": server.address})
    return server


def component_routes(
    registry: CollectorRegistry,
    readiness: Callable[[], str],
    way: CycleLock | None = None,
) -> dict[str, Route]:
    """/metrics, /healthz and /readyz. `readiness` gives an empty text, or the reason for 503.

    /metrics waits for `way`, which is taken while a cycle runs.
    """
    page, free = MetricsPage(registry), way or CycleLock()
    return page_routes(lambda accepted: page.write(accepted, ScrapeThrottle(free)), readiness)


def debug_routes(
    cycles: CycleRing, loop: asyncio.AbstractEventLoop | None = None
) -> dict[str, Route]:
    """The pages for a shard that is slow or stands still."""
    return {
        "/debug/cycles": Route(lambda request: _cycles(cycles, request)),
        "/debug/stacks": Route(lambda _request: Response(stacks(loop).encode())),
    }


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


def _cycles(cycles: CycleRing, request: Request) -> Response:
    given = request.query.get("since", ["0"])[-1]
    try:
        since = int(given)
    except ValueError:
        return Response(f"since={given[:64]!r} is not the number of a cycle\n".encode(), status=400)
    lines = "".join(f"{record.line()}\n" for record in cycles.since(since))
    return Response(lines.encode(), "application/x-ndjson")
