"""What the benchmarks are held against: the bars of the specification, by name of the result."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bigfleet_lab.simulate.workloads import SIZES

_MS_BY_SIZE: Final = {
    "steady": (3, 8, 50),
    "gangs": (15, 50, 500),
    "gangs-whole": (15, 50, 500),
    "cold": (20, 60, 600),
    "reclaim": (5, 15, 150),
    "preempt": (10, 30, 300),
    "one-to-one": (50, 500, 5_000),
}

CYCLE_BARS: Final[Mapping[tuple[str, int], float]] = MappingProxyType(
    {
        (workload, size): float(bar)
        for workload, bars in _MS_BY_SIZE.items()
        for size, bar in zip(SIZES, bars, strict=True)
    }
)
"""Workload and number of machines -> milliseconds a whole cycle may take, p99."""

FIRST_CYCLE_SECONDS: Final = 3.0
"""In a fresh process, 50,000 machines, compiled code in the cache."""
FIRST_CYCLE_AFTER_INSTALL_SECONDS: Final = 60.0
"""The same once after an install, when everything has to be compiled."""
PER_NEED_GANGS_US: Final = 20.0
COLUMN_BYTES: Final = 64.0
MACHINE_BYTES: Final = 128.0
LOAD_SECONDS: Final = 5.0
