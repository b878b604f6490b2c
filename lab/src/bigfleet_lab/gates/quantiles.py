"""Quantiles: exact where every sample was kept, else the bucket of a histogram that holds it.

The quantile is the smallest sample that at least this share of the samples does not exceed, so it
is always a value that was measured. Of a histogram only the bucket is known: `lo` and `hi` say
which one, and `hi` is what a gate compares, so that a gate never passes by interpolation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf


def quantile(samples: Iterable[float], share: float) -> float | None:
    """The quantile; None without samples."""
    ordered = sorted(samples)
    if not ordered:
        return None
    # Rounded first: 0.07 * 100 is 7.000000000000001.
    place = ceil(round(share * len(ordered), 9))
    return ordered[min(len(ordered), max(1, place)) - 1]


def distribution(samples: Sequence[float]) -> dict[str, float] | None:
    """Count, mean, quantiles and the largest; None without samples."""
    if not samples:
        return None
    found: dict[str, float] = {"n": float(len(samples)), "mean": sum(samples) / len(samples)}
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        value = quantile(samples, share)
        assert value is not None
        found[name] = value
    found["max"] = max(samples)
    return found


@dataclass(frozen=True, slots=True)
class BucketQuantile:
    """The bucket that holds a quantile, and of how many observations."""

    lo: float
    hi: float
    samples: int


def bucket_quantile(buckets: Mapping[float, float], share: float) -> BucketQuantile | None:
    """The bucket of a histogram (upper bound -> observations up to it); None without any."""
    bounds = sorted(buckets)
    if not bounds or buckets[bounds[-1]] <= 0:
        return None
    total = buckets[bounds[-1]]
    wanted = max(1, ceil(round(share * total, 9)))
    lower = 0.0
    for bound in bounds:
        if buckets[bound] >= wanted:
            return BucketQuantile(lower, bound, round(total))
        lower = bound
    return BucketQuantile(lower, inf, round(total))
