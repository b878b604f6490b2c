"""Rows of the results file for parts that are measured as processes: one per bar, as JSON.

What is measured, and how, is each part's own. A result that is wrong has no figure; one that is
too slow has its figure and is not ok.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bigfleet.cli.errors import FailureError


class WrongResultError(Exception):
    """A scenario did not do what it was measured for."""


def expect(holds: bool, what: str) -> None:
    """Refuse a figure for something that did not happen."""
    if not holds:
        raise WrongResultError(what)


@dataclass(frozen=True, slots=True)
class BarMeasurement:
    """What a measurement found: many samples, of which one figure counts, or one value."""

    samples: Sequence[float] = ()
    value: float | None = None
    counts: str = "p99"
    most_mean: float = float("inf")
    """A second bar, for the mean of the samples."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: how it is measured and what is asked of it."""

    measure: Callable[[], BarMeasurement]
    bar: float
    unit: str
    better: str = "lower"


def quantiles(samples: Sequence[float]) -> dict[str, float]:
    """p50, p95, p99 and maximum."""
    values = np.array(samples)
    found = {f"p{q}": float(np.percentile(values, q)) for q in (50, 95, 99)}
    return {**found, "max": float(values.max())}


def row(name: str, asked: Bar, command: str) -> dict[str, Any]:
    """Measure one bar."""
    figures: dict[str, Any] = dict.fromkeys(("p50", "p95", "p99", "max", "value"))
    made = {
        "name": name, "unit": asked.unit, "bar": asked.bar, "better": asked.better,
        "command": command,
    }  # fmt: skip
    try:
        found = asked.measure()
    except (WrongResultError, FailureError) as error:
        return {**made, **figures, "ok": False, "runs": 0, "complaint": str(error)}
    samples = found.samples
    if samples:
        figures |= {key: round(value, 3) for key, value in quantiles(samples).items()}
    figures["value"] = found.value
    figure = figures[found.counts] if found.value is None else found.value
    ok = figure <= asked.bar if asked.better == "lower" else figure >= asked.bar
    mean = sum(samples) / len(samples) if samples else found.value or 0.0
    spread = (sum((s - mean) ** 2 for s in samples) / len(samples)) ** 0.5 if samples else 0.0
    return {
        **made, **figures, "ok": bool(ok) and mean <= found.most_mean,
        "runs": max(1, len(samples)), "mean": round(mean, 3), "stddev": round(spread, 3),
    }  # fmt: skip


def print_rows(rows: Mapping[str, Bar], names: Sequence[str], command: str) -> None:
    """Measure these, or all; progress on stderr, the rows on stdout."""
    unknown = [name for name in names if name not in rows]
    if unknown:
        sys.exit(f"{unknown[0]!r} is not a row: use one of {', '.join(rows)}")
    made = []
    for name in names or rows:
        print(f"{name} ...", file=sys.stderr, flush=True)
        made.append(row(name, rows[name], command))
    json.dump(made, sys.stdout, indent=1)
