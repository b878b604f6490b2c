"""Rows of bench/results.json, and what a scenario must show before it has a figure."""

import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

COMMAND = "make bench ONLY=provider"


class Row(TypedDict):
    """One line of bench/results.json."""

    name: str
    unit: str
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None
    value: float | None
    bar: float
    better: str
    ok: bool
    runs: int
    mean: float | None
    stddev: float | None
    command: str
    complaint: NotRequired[str]


class WrongResultError(AssertionError):
    """A scenario did not do what it was measured for."""


def expect(holds: bool, what: str) -> None:
    """Refuse to measure something that did not happen."""
    if not holds:
        raise WrongResultError(what)


def quantile(samples: Sequence[float], share: float) -> float:
    """The value below which this share of the samples lies."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(
    name: str,
    samples: Sequence[float],
    bar: float,
    *,
    value: float | None = None,
    unit: str = "ms",
    better: str = "lower",
    ok: bool | None = None,
) -> Row:
    """A row from samples in milliseconds; `value` is a single figure where the bar is one."""
    p99 = quantile(samples, 0.99) if samples else None
    figure = value if value is not None else p99
    met = figure is not None and (figure <= bar if better == "lower" else figure >= bar)
    return Row(
        name=name, unit=unit,
        p50=_rounded(quantile(samples, 0.50)) if samples else None,
        p95=_rounded(quantile(samples, 0.95)) if samples else None,
        p99=_rounded(p99), max=_rounded(max(samples)) if samples else None,
        value=_rounded(value), bar=bar, better=better,
        ok=met if ok is None else met and ok,
        runs=len(samples) or 1,
        mean=_rounded(statistics.fmean(samples)) if samples else _rounded(value),
        stddev=_rounded(statistics.pstdev(samples)) if samples else None,
        command=COMMAND,
    )  # fmt: skip


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)


@dataclass(frozen=True, slots=True)
class Bar:
    """What one row is held against."""

    name: str
    bar: float
    unit: str
    better: str


def failed(bar: Bar, complaint: str) -> Row:
    """A scenario whose result was wrong: no figure, and the reason."""
    return Row(
        name=bar.name, unit=bar.unit, p50=None, p95=None, p99=None, max=None, value=None,
        bar=bar.bar, better=bar.better, ok=False, runs=0, mean=None, stddev=None,
        command=COMMAND, complaint=complaint,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scenario:
    """Something that is measured, in an empty folder, and the bars it has."""

    measure: Callable[[Path], Awaitable[list[Row]]]
    bars: tuple[Bar, ...]
    times: int = 1


def middle(rounds: Sequence[Sequence[Row]]) -> list[Row]:
    """Of several rounds, for each row the one in the middle: load from elsewhere does not count."""
    found = []
    for same in zip(*rounds, strict=True):
        ordered = sorted(same, key=lambda row: row["p99"] or row["value"] or float("inf"))
        found.append(ordered[len(ordered) // 2])
    return found
