"""Histograms that cost little to write to and to read.

Most samples of a page are buckets: 1,300 of a shard's 1,600. The library looks for a bucket from
the first one on, and builds every line of a page again from its labels. Here an observation
bisects, and the text in front of a number is made once per series. To a registry it is a collector
like any other, with the same samples.
"""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

number: Final = lru_cache(4096)(floatToGoString)
"""How a page writes a number; the same few come again and again."""


def opening(name: str, labels: dict[str, str]) -> str:
    """A line of a page up to its number."""
    if not labels:
        return f"{name} "
    shown = ",".join(f'{label}="{_escaped(labels[label])}"' for label in sorted(labels))
    return f"{name}{{{shown}}} "


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


class Series:
    """One histogram: how many observations lie in which bucket."""

    def __init__(self, name: str, bounds: Sequence[float], labels: dict[str, str]) -> None:
        self.labels = labels
        self.edges = tuple(str(number(bound)) for bound in (*bounds, float("inf")))
        self._bounds = bounds
        self._counts = [0] * len(self.edges)
        self._sum = 0.0
        self._lock = threading.Lock()
        self._openings = (
            *(opening(f"{name}_bucket", {**labels, "le": edge}) for edge in self.edges),
            opening(f"{name}_count", labels),
            opening(f"{name}_sum", labels),
        )

    def observe(self, value: float) -> None:
        """One more; a bucket holds what is at most its bound."""
        place = bisect_left(self._bounds, value)
        with self._lock:
            self._counts[place] += 1
            self._sum += value

    def numbers(self) -> list[float]:
        """Of every bucket and all before it; then how many there are, and their sum."""
        with self._lock:
            counts, total = self._counts.copy(), self._sum
        upto = [float(count) for count in itertools.accumulate(counts)]
        return [*upto, upto[-1], total]

    def lines(self) -> list[str]:
        """Its lines of a page."""
        shown = zip(self._openings, self.numbers(), strict=True)
        return [f"{before}{number(value)}\n" for before, value in shown]


class Distribution(Collector):
    """Histograms of one name, one per combination of label values."""

    def __init__(
        self, name: str, meaning: str, bounds: Sequence[float], labels: Sequence[str] = ()
    ) -> None:
        self._name, self._meaning = name, meaning
        self._bounds, self.label_names = tuple(bounds), tuple(labels)
        self._series: dict[tuple[str, ...], Series] = {}
        if not labels:
            self.labels()

    def labels(self, *values: str) -> Series:
        """The histogram with these values; it is there from now on."""
        known = self._series.get(values)
        if known is None:
            labels = dict(zip(self.label_names, values, strict=True))
            made = Series(self._name, self._bounds, labels)
            # Another caller that makes it at the same time gets this one.
            known = self._series.setdefault(values, made)
        return known

    def observe(self, value: float) -> None:
        """One more, where there are no labels."""
        self.labels().observe(value)

    def family(self) -> Metric:
        """Name, meaning and type."""
        return Metric(self._name, self._meaning, "histogram")

    def lines(self) -> Iterator[list[str]]:
        """The lines of a page, one series after the other."""
        for series in list(self._series.values()):
            yield series.lines()

    def describe(self) -> list[Metric]:
        """What a registry compares names with."""
        return [self.family()]

    def collect(self) -> list[Metric]:
        """Every sample, for those who do not want a page."""
        made = self.family()
        for series in list(self._series.values()):
            *buckets, count, total = series.numbers()
            for edge, value in zip(series.edges, buckets, strict=True):
                made.add_sample(f"{self._name}_bucket", {**series.labels, "le": edge}, value)
            made.add_sample(f"{self._name}_count", series.labels, count)
            made.add_sample(f"{self._name}_sum", series.labels, total)
        return [made]


# The bounds of histograms, in seconds: fine for cycles, medium for calls, long for machines.
#
# Every threshold the scale test judges by is a bound of its histogram, so that "share of samples
# within the limit" is exact.


def _bounds(*groups: Iterable[float]) -> tuple[float, ...]:
    return tuple(sorted({round(bound, 6) for group in groups for bound in group}))


FINE: Final = _bounds(
    (0.0001, 0.00025, 0.0005),
    (0.001 * 10 ** (i / 17) for i in range(77)),
    (30, 60, 120, 300),
    (0.03, 0.05, 0.25, 0.5, 5),
)
"""Neighbours are at most 14.6 % apart between 1 ms and 30 s."""

MEDIUM: Final = _bounds(
    (0.001 * 10 ** (i / 8) for i in range(47)),
    (600,),
    (0.05, 0.25, 0.5, 1.5, 2, 5, 12, 15, 30),
)
"""At most 34 % apart."""

LONG: Final = _bounds(
    (0.1 * 10 ** (i / 6) for i in range(28)),
    (3600, 7200),
    (15, 30, 60, 600),
)
