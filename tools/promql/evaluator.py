"""Tree and samples -> values by labels, as Prometheus computes them.

A number on its own is a value without labels that meets every series. Ranges include both of their
ends; a series counts for five minutes after its last sample.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from promql.parser import (
    Aggregate,
    Call,
    Expression,
    Number,
    Operation,
    QueryError,
    Selector,
    Subquery,
)
from promql.series import LOOKBACK_SECONDS, NAME, Labels, Sample, Samples

Vector = dict[Labels, float]
_NO_LABELS: Final[Labels] = frozenset()
_NEAR: Final = 1.1
"""A range is taken to reach its border if the border is nearer than so many usual intervals."""
_ARITHMETIC: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a / b if b else math.nan if not a or math.isnan(a) else math.inf * a,
}
_COMPARING: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
_PUT_TOGETHER: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "sum": math.fsum,
    "max": max,
    "min": min,
}


def evaluate(tree: Expression, samples: Samples, at: float) -> Vector:
    """The answer at a time, in Unix seconds."""
    found = _value(tree, samples, at)
    return {_NO_LABELS: found} if isinstance(found, float) else found


def _value(tree: Expression, samples: Samples, at: float) -> Vector | float:
    match tree:
        case Number(value):
            return value
        case Selector(name, matchers, span, offset) if not span:
            then = at - offset
            ranges = samples.within(name, matchers, then - LOOKBACK_SECONDS, then)
            return {labels: found[-1][1] for labels, found in ranges}
        case Aggregate(function, by, inner):
            return _aggregate(function, by, _vector(inner, samples, at))
        case Operation():
            return _operate(tree, _value(tree.left, samples, at), _value(tree.right, samples, at))
        case Call():
            return _call(tree, samples, at)
    raise QueryError(f"{tree} has no value by itself")


def _vector(tree: Expression, samples: Samples, at: float) -> Vector:
    found = _value(tree, samples, at)
    if isinstance(found, float):
        raise QueryError(f"{tree} is a number where series are needed")
    return found


def _nameless(labels: Labels) -> Labels:
    return frozenset(pair for pair in labels if pair[0] != NAME)


def _only(labels: Labels, names: Sequence[str]) -> Labels:
    return frozenset(pair for pair in labels if pair[0] in names)


def _aggregate(function: str, by: Sequence[str], found: Vector) -> Vector:
    groups: dict[Labels, list[float]] = {}
    for labels, value in found.items():
        groups.setdefault(_only(labels, by), []).append(value)
    return {labels: _PUT_TOGETHER[function](values) for labels, values in groups.items()}


def _operate(tree: Operation, left: Vector | float, right: Vector | float) -> Vector | float:
    if tree.sign == "and":
        return _both(tree, left, right)
    if isinstance(left, float) and isinstance(right, float):
        return _ARITHMETIC[tree.sign](left, right)
    pairs = list(_paired(left, right))
    if tree.sign in _COMPARING:
        compare = _COMPARING[tree.sign]
        kept = [(labels, a if isinstance(left, dict) else b) for labels, a, b in pairs
                if compare(a, b)]  # fmt: skip
        return dict(kept)
    compute = _ARITHMETIC[tree.sign]
    return {_nameless(labels): compute(a, b) for labels, a, b in pairs}


def _paired(left: Vector | float, right: Vector | float) -> list[tuple[Labels, float, float]]:
    if isinstance(left, float):
        assert isinstance(right, dict)
        return [(labels, left, b) for labels, b in right.items()]
    if isinstance(right, float):
        return [(labels, a, right) for labels, a in left.items()]
    others = {_nameless(labels): b for labels, b in right.items()}
    if len(others) < len(right):
        raise QueryError("several series on one side fit one on the other")
    return [
        (labels, a, others[_nameless(labels)])
        for labels, a in left.items()
        if _nameless(labels) in others
    ]


def _both(tree: Operation, left: Vector | float, right: Vector | float) -> Vector:
    if isinstance(left, float) or isinstance(right, float):
        raise QueryError("`and` stands between series")

    def key(labels: Labels) -> Labels:
        return _nameless(labels) if tree.on is None else _only(labels, tree.on)

    there = {key(labels) for labels in right}
    return {labels: value for labels, value in left.items() if key(labels) in there}


def _call(tree: Call, samples: Samples, at: float) -> Vector | float:
    match tree.function, tree.arguments:
        case "time", ():
            return float(at)
        case "histogram_quantile", (Number(share), inner):
            return _histogram_quantile(share, _vector(inner, samples, at))
        case "quantile_over_time", (Number(share), over):
            ranges = _ranges(over, samples, at)
            return {
                _nameless(labels): _quantile(share, [value for _, value in found])
                for labels, found in ranges.items()
            }
        case ("rate" | "increase" | "changes") as function, (Selector() as inner,):
            answers = {
                _nameless(labels): _over(function, found, at - inner.offset, inner.span)
                for labels, found in _ranges(inner, samples, at).items()
            }
            return {labels: value for labels, value in answers.items() if value is not None}
    raise QueryError(f"{tree.function} is not used like that")


def _ranges(tree: Expression, samples: Samples, at: float) -> dict[Labels, list[Sample]]:
    match tree:
        case Selector(name, matchers, span, offset) if span:
            end = at - offset
            return dict(samples.within(name, matchers, end - span, end))
        case Subquery(inner, span, step):
            found: dict[Labels, list[Sample]] = {}
            first = math.ceil((at - span) / step)
            for number in range(first, math.floor(at / step) + 1):
                for labels, value in _vector(inner, samples, number * step).items():
                    found.setdefault(labels, []).append((number * step, value))
            return found
    raise QueryError(f"{tree} has no samples over time: write [5m] behind series")


def _over(function: str, found: Sequence[Sample], end: float, span: float) -> float | None:
    """rate, increase or changes of one series over a range."""
    values = [value for _, value in found]
    if function == "changes":
        return float(sum(a != b for a, b in itertools.pairwise(values)))
    if len(found) < 2:
        return None
    grown = values[-1] - values[0] + sum(a for a, b in itertools.pairwise(values) if b < a)
    lived = found[-1][0] - found[0][0]
    usual = lived / (len(found) - 1)
    to_start, to_end = found[0][0] - (end - span), end - found[-1][0]
    if grown > 0 and values[0] >= 0:
        # A counter was never below 0: it cannot have grown from before that.
        to_start = min(to_start, lived * values[0] / grown)
    reached = lived
    reached += to_start if to_start < usual * _NEAR else usual / 2
    reached += to_end if to_end < usual * _NEAR else usual / 2
    whole = grown * reached / lived
    return whole / span if function == "rate" else whole


def _quantile(share: float, values: Sequence[float]) -> float:
    ordered = sorted(values)
    rank = share * (len(ordered) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] * (1 - (rank - low)) + ordered[high] * (rank - low)


def _histogram_quantile(share: float, found: Vector) -> Vector:
    groups: dict[Labels, list[tuple[float, float]]] = {}
    for labels, value in found.items():
        bound = float(dict(labels)["le"])
        rest = frozenset(pair for pair in labels if pair[0] not in ("le", NAME))
        groups.setdefault(rest, []).append((bound, value))
    return {labels: _in_buckets(share, sorted(buckets)) for labels, buckets in groups.items()}


def _in_buckets(share: float, buckets: Sequence[tuple[float, float]]) -> float:
    if len(buckets) < 2 or not math.isinf(buckets[-1][0]):
        return math.nan
    counts = list(itertools.accumulate((count for _, count in buckets), max))
    if not counts[-1]:
        return math.nan
    rank = share * counts[-1]
    at = next((n for n, count in enumerate(counts[:-1]) if count >= rank), len(buckets) - 1)
    if at == len(buckets) - 1:
        return buckets[-2][0]
    below, before = (buckets[at - 1][0], counts[at - 1]) if at else (0.0, 0.0)
    inside = counts[at] - before
    return below + (buckets[at][0] - below) * (rank - before) / inside
