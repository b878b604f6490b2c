"""Scrapes that stay out of a cycle's way.

Writing a page of 1,600 samples takes 10 ms of the interpreter, in a thread that shares it with the
ones that decide and serve sessions. So a page is written in small bites; between two of them others
get their turn, and while a cycle runs the page waits for its end. A scrape must be answered in
time, whatever cycles take: what is not written by then is written in one go. Measured by
`make bench ONLY=metrics`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

BITE: Final = 32
"""Samples that are written in a fifth of a millisecond."""
PAUSE_SECONDS: Final = 0.0002
PATIENCE_SECONDS: Final = 0.05
"""After this a page makes no more pauses and waits for no cycle: a scrape has 100 ms."""


class RightOfWay:
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


class Unhurried(Collector):
    """The metrics of a registry, for one page, with pauses in between."""

    def __init__(
        self,
        registry: CollectorRegistry,
        way: RightOfWay,
        rest: Callable[[float], None] = time.sleep,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry, self._way, self._rest, self._timer = registry, way, rest, timer
        self._read = 0
        self._until = timer() + PATIENCE_SECONDS

    def collect(self) -> Iterator[Metric]:
        """Every metric; its samples can be read once."""
        self._give_way()
        for metric in self._registry.collect():
            metric.samples = self._in_bites(metric.samples)  # type: ignore[assignment]
            yield metric

    def _in_bites(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        for sample in samples:
            self._read += 1
            if self._read % BITE == 0:
                self._give_way()
            yield sample

    def _give_way(self) -> None:
        if self._timer() < self._until:
            self._rest(PAUSE_SECONDS)
            self._way.wait(max(0.0, self._until - self._timer()))
