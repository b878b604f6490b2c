"""What all processes of a run said of themselves, second by second.

A sample has the metrics of every process that answered and, of the load driver, its last line.
Counters start again with a process; `grown` adds up what they grew by over all lives.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Series = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FleetSample:
    """One moment. A process that does not answer is absent."""

    unix_s: float
    processes: Mapping[str, Series]
    load: Mapping[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """As it is stored."""
        return json.dumps({"t": self.unix_s, "processes": self.processes, "load": self.load})


def parse_metrics(text: str, prefixes: Sequence[str]) -> dict[str, float]:
    """Series by name and labels, those with one of the prefixes."""
    found = {}
    for line in text.splitlines():
        if line.startswith(tuple(prefixes)):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found


def values(series: Series, name: str, label: str = "") -> Iterator[float]:
    """The values of a metric; only series with this label, such as `kind="Bootstrap"`."""
    for key, value in series.items():
        metric, _, labels = key.partition("{")
        if metric == name and (not label or label in labels):
            yield value


def total(series: Series, name: str, label: str = "") -> float | None:
    """The sum over a metric's series; None where there is none."""
    found = list(values(series, name, label))
    return sum(found) if found else None


def grown(
    samples: Iterable[FleetSample], process: str, value: Callable[[Series], float | None]
) -> float | None:
    """How much a counter grew, over restarts of its process; None if it was seen once at most."""
    found = [
        number
        for sample in samples
        if process in sample.processes and (number := value(sample.processes[process])) is not None
    ]
    if len(found) < 2:
        return None
    return sum(later - now if later >= now else later for now, later in pairwise(found))


def counter(name: str, label: str = "") -> Callable[[Series], float | None]:
    """For `grown`: a counter, summed over its labels."""
    return lambda series: total(series, name, label)


def buckets_grown(samples: Sequence[FleetSample], process: str, name: str) -> dict[float, float]:
    """Upper bound -> observations up to it, of a histogram, in these samples."""
    bounds = {
        key.partition('le="')[2].partition('"')[0]
        for sample in samples
        for key in sample.processes.get(process, {})
        if key.startswith(f"{name}_bucket")
    }
    found = {}
    for bound in bounds:
        label = f'le="{bound}"'
        growth = grown(samples, process, counter(f"{name}_bucket", label))
        if growth is not None:
            found[float(bound.replace("+Inf", "inf"))] = growth
    return found
