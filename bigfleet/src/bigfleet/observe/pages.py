"""The HTTP pages of a component: /metrics and probes, and debug pages for a shard.

The server is `bigfleet_base.http`; it runs on a thread of its own, so no scrape holds the event
loop. A scrape waits for the end of a running cycle (`ScrapeThrottle`).
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from bigfleet.observe.cycles import CycleRing
from bigfleet.observe.distribution import Distribution, number, opening
from bigfleet_base.http import HttpServer, Request, Response, Route, page_routes

# Scrapes that stay out of a cycle's way.
#
# A page is written by a thread that shares the interpreter with the ones that decide and serve
# sessions. So it is written in bites; between two of them others get their turn, and while a cycle
# runs the page waits for its end. A scrape must be answered in time, whatever cycles take: what is
# not written by then is written in one go. Measured by `make bench ONLY=metrics`.

PAUSE_SECONDS: Final = 0.0002
PATIENCE_SECONDS: Final = 0.05
"""After this a page makes no more pauses and waits for no cycle: a scrape has 100 ms."""


class CycleLock:
    """Who must not be disturbed takes it; who can wait looks whether it is taken."""

    def __init__(self) -> None:
        self._free = threading.Event()
        self._free.set()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Around what must not be disturbed; by one at a time."""
        self._free.clear()
        try:
            yield
        finally:
            self._free.set()

    def wait(self, seconds: float) -> None:
        """Return when it is free, or so much later."""
        self._free.wait(seconds)


class ScrapeThrottle:
    """What a page does between two bites."""

    def __init__(
        self,
        way: CycleLock,
        rest: Callable[[float], None] = time.sleep,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._way, self._rest, self._timer = way, rest, timer
        self._until = timer() + PATIENCE_SECONDS

    def __call__(self) -> None:
        """Let others have their turn, and a cycle its end."""
        if self._timer() < self._until:
            self._rest(PAUSE_SECONDS)
            self._way.wait(max(0.0, self._until - self._timer()))


# The page of /metrics, in both forms, written so that a scrape costs next to nothing.
#
# What the library does in 10 ms for a shard is 1 ms here, because the text in front of a number is
# kept from one scrape to the next. Our names need no escaping, and we have neither exemplars nor
# timestamps, so that lines of samples are the same in both forms; the head of a family is not.

BITE: Final = 200
"""Lines that are written in about a tenth of a millisecond."""
_MOST_OPENINGS: Final = 20_000
_TEXT_TYPES: Final = {"unknown": "untyped"}


class Registry(CollectorRegistry):
    """A registry that says what it consists of."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[Collector, None] = {}

    def register(self, collector: Collector) -> None:
        """One more part."""
        super().register(collector)
        self.parts[collector] = None

    def unregister(self, collector: Collector) -> None:
        """A part less."""
        super().unregister(collector)
        del self.parts[collector]


class MetricsPage:
    """Writes the page of one registry. It may be asked by several threads at once."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._openings: dict[tuple[str, ...], str] = {}

    def write(self, accepted: str, give_way: Callable[[], None]) -> tuple[bytes, str]:
        """The page in a form that is accepted, and its type; others get turns in between."""
        _, kind = choose_encoder(accepted)
        is_open = kind.startswith("application/openmetrics-text")
        if len(self._openings) > _MOST_OPENINGS:
            self._openings.clear()
        page: list[str] = []
        written = 0
        give_way()
        for lines in self._families(is_open):
            page += lines
            if len(page) - written >= BITE:
                written = len(page)
                give_way()
        if is_open:
            page.append("# EOF\n")
        return "".join(page).encode(), kind

    def _families(self, is_open: bool) -> Iterator[list[str]]:
        known = self._registry
        parts: Iterable[Collector] = list(known.parts) if isinstance(known, Registry) else [known]
        for part in parts:
            if isinstance(part, Distribution):
                yield _head(part.family(), is_open)
                yield from part.lines()
                continue
            for metric in part.collect():
                yield _head(metric, is_open)
                yield [self._line(sample) for sample in metric.samples]

    def _line(self, sample: Sample) -> str:
        key = (sample.name, *sample.labels.values())
        before = self._openings.get(key)
        if before is None:
            before = self._openings[key] = opening(sample.name, sample.labels)
        return f"{before}{number(sample.value)}\n"


def _head(metric: Metric, is_open: bool) -> list[str]:
    meaning = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
    name, kind = metric.name, metric.type
    if is_open:
        meaning = meaning.replace('"', r"\"")
    else:
        name = f"{name}_total" if kind == "counter" else name
        kind = _TEXT_TYPES.get(kind, kind)
    return [f"# HELP {name} {meaning}\n", f"# TYPE {name} {kind}\n"]


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
