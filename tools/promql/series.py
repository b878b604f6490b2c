"""Samples by their labels: what scrapes have brought, or what another source has."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from promql.parser import Matcher

NAME: Final = "__name__"
LOOKBACK_SECONDS: Final = 300.0
Labels = frozenset[tuple[str, str]]
Sample = tuple[float, float]
"""Unix seconds, and the value then."""


class Samples:
    """Series by name; the samples of each in the order of time."""

    def __init__(self) -> None:
        self._series: dict[str, dict[Labels, list[Sample]]] = {}

    def add(self, labels: Labels, samples: Iterable[Sample]) -> None:
        """Samples of one series, its name among the labels."""
        name = dict(labels)[NAME]
        self._series.setdefault(name, {}).setdefault(labels, []).extend(samples)

    def scrape(self, address: str, more: Mapping[str, str]) -> None:
        """Read a page of metrics; its series get these labels as well."""
        now = time.time()
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = {**sample.labels, **more, NAME: sample.name}
                self.add(frozenset(labels.items()), [(now, sample.value)])
        self.add(frozenset({**more, NAME: "up"}.items()), [(now, 1.0)])

    def within(
        self, name: str, matchers: Iterable[Matcher], start: float, end: float
    ) -> Iterator[tuple[Labels, list[Sample]]]:
        """The samples of fitting series from one time to another; series without any are left."""
        conditions = tuple(matchers)
        for labels, samples in self._series.get(name, {}).items():
            if samples[-1][0] < start or samples[0][0] > end:
                continue
            known = dict(labels)
            if all(one.holds(known.get(one.label, "")) for one in conditions):
                found = [sample for sample in samples if start <= sample[0] <= end]
                if found:
                    yield labels, found
