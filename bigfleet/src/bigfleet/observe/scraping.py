"""A registry that is read in small bites, so that a scrape stays out of a cycle's way.

Writing a page of some thousand samples takes 20 ms of the interpreter, which a thread that decides
or serves sessions would wait for, two milliseconds at each turn. Whoever reads here lets go of the
interpreter after every few samples. Measured by `make bench ONLY=metrics`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

BITE: Final = 128
"""Samples that are written in less than a millisecond."""
PAUSE_SECONDS: Final = 0.0002


class Unhurried(Collector):
    """The metrics of a registry, with pauses in between."""

    def __init__(
        self, registry: CollectorRegistry, rest: Callable[[float], None] = time.sleep
    ) -> None:
        self._registry, self._rest = registry, rest
        self._read = 0

    def collect(self) -> Iterator[Metric]:
        """Every metric; its samples can be read once."""
        for metric in self._registry.collect():
            metric.samples = self._in_bites(metric.samples)  # type: ignore[assignment]
            yield metric

    def _in_bites(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        for sample in samples:
            self._read += 1
            if self._read % BITE == 0:
                self._rest(PAUSE_SECONDS)
            yield sample
