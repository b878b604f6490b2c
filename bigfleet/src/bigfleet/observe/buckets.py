"""The bounds of histograms, in seconds: fine for cycles, medium for calls, long for machines.

Every threshold the scale test judges by is a bound of its histogram, so that "share of samples
within the limit" is exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final


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
