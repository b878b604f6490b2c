"""Rows of bench/results.json for a running shard, as JSON on stdout; progress on stderr.

python -m bigfleet_lab.bench_shard [NAME...]     such as shard.cycle.5000, or nothing for all
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from bigfleet_lab.bench.rows import Bar, BarMeasurement, expect, print_rows, quantiles
from bigfleet_lab.bench_shard import explanations, scenarios

COMMAND: Final = "make bench ONLY=shard"
_MOST_PEAK: Final = 1.3e9
_steady = lru_cache(maxsize=1)(scenarios.steady)
_explaining = lru_cache(maxsize=1)(explanations.explaining)


def _cycle(machines: int) -> BarMeasurement:
    return BarMeasurement(_steady(machines)["cycle_ms"])


def _memory() -> BarMeasurement:
    found = _steady(500_000)
    peak = found["peak"]
    expect(peak <= _MOST_PEAK, f"it held {peak / 1e9:.2f} GB while the List came in")
    return BarMeasurement(value=found["memory"])


def _cycle_beside_explanations() -> BarMeasurement:
    found = _explaining()
    alone, beside = (quantiles(found[name])["p99"] for name in ("cycle_ms", "cycle_beside_ms"))
    return BarMeasurement(value=beside / alone)


ROWS: Final[Mapping[str, Bar]] = {
    "shard.cycle.5000": Bar(lambda: _cycle(5_000), 30, "ms"),
    "shard.cycle.50000": Bar(lambda: _cycle(50_000), 100, "ms"),
    "shard.cycle.500000": Bar(lambda: _cycle(500_000), 500, "ms"),
    "shard.hello.500000": Bar(lambda: BarMeasurement(_steady(500_000)["hello_ms"]), 100, "ms"),
    "shard.memory.500000": Bar(_memory, 1e9, "bytes"),
    "shard.bindings.5000": Bar(
        lambda: BarMeasurement(value=scenarios.bindings()["per_second"]),
        1_000,
        "per second",
        "higher",
    ),
    "shard.rollup-ack.1000": Bar(
        lambda: BarMeasurement(scenarios.many_sessions()["ack_ms"]), 500, "ms"
    ),
    "shard.explain.50000": Bar(lambda: BarMeasurement(_explaining()["explain_ms"]), 500, "ms"),
    "shard.cycle-beside-explain.50000": Bar(
        _cycle_beside_explanations, 1.2, "times the p99 without requests"
    ),
    "shard.restart.50000": Bar(
        lambda: BarMeasurement(value=scenarios.restart()["seconds"]), 10, "s"
    ),
}


if __name__ == "__main__":
    print_rows(ROWS, sys.argv[1:], COMMAND)
