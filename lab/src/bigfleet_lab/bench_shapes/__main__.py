"""Decisions on fleets drawn from seeds: rows of bench/results.json, or a table of single shapes.

python -m bigfleet_lab.bench_shapes [NAME...]          rows as JSON on stdout, all or these
python -m bigfleet_lab.bench_shapes --fresh --machines 50000 --needs 2000 --seeds 0-200
python -m bigfleet_lab.bench_shapes --settled ...      the same with rows that change each cycle
                                                       (--one-cluster: one cluster owns everything)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from bigfleet_lab.bench.rows import Bar, BarMeasurement, print_rows
from bigfleet_lab.bench_shapes.timings import (
    ShapeTimes,
    percentile,
    time_fresh,
    time_settled,
    worst_of,
)
from bigfleet_lab.simulate.fleet_shapes import FleetShape, draw_shape, one_cluster

COMMAND: Final = "make bench ONLY=shapes"
Draw = Callable[[int, int, int], FleetShape]
Timer = Callable[[FleetShape], ShapeTimes]


@lru_cache
def _measured(
    timer: Timer, draw: Draw, machines: int, needs: int, seeds: range
) -> tuple[ShapeTimes, ...]:
    """Measured once, also where two rows are made of it."""
    timer(draw(seeds.start, 1_000, 40))
    found = []
    for seed in seeds:
        times = timer(draw(seed, machines, needs))
        found.append(times)
        slowest = max(times.ms)
        print(f"{slowest:10.1f} ms  {times.digest[:8]}  {times.shape.name}", file=sys.stderr)
    print(f"worst: {worst_of(found).shape}", file=sys.stderr, flush=True)
    return tuple(found)


def _all(
    timer: Timer, draw: Draw, machines: int, needs: int, seeds: range, counts: str
) -> BarMeasurement:
    found = _measured(timer, draw, machines, needs, seeds)
    return BarMeasurement([ms for times in found for ms in times.ms], counts=counts)


def _row(timer: Timer, draw: Draw, size: tuple[int, int, int], counts: str, bar: float) -> Bar:
    machines, needs, seeds = size
    return Bar(lambda: _all(timer, draw, machines, needs, range(seeds), counts), bar, "ms")


_SMALL, _LARGE = (50_000, 2_000), (500_000, 20_000)
ROWS: Final[Mapping[str, Bar]] = {
    "engine.shapes.fresh-p50.50000": _row(time_fresh, draw_shape, (*_SMALL, 200), "p50", 60),
    "engine.shapes.fresh-max.50000": _row(time_fresh, draw_shape, (*_SMALL, 200), "max", 400),
    "engine.shapes.one-cluster.50000": _row(time_fresh, one_cluster, (*_SMALL, 30), "max", 400),
    "engine.shapes.settled.50000": _row(time_settled, draw_shape, (*_SMALL, 60), "p99", 20),
    "engine.shapes.fresh-max.500000": _row(time_fresh, draw_shape, (*_LARGE, 20), "max", 4_000),
    "engine.shapes.one-cluster.500000": _row(time_fresh, one_cluster, (*_LARGE, 5), "max", 4_000),
    "engine.shapes.settled.500000": _row(time_settled, draw_shape, (*_LARGE, 8), "p99", 200),
}  # fmt: skip


def main(words: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser("python -m bigfleet_lab.bench_shapes", description=__doc__)
    parser.add_argument("names", nargs="*")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--fresh", action="store_true")
    mode.add_argument("--settled", action="store_true")
    parser.add_argument("--one-cluster", action="store_true")
    parser.add_argument("--machines", type=int, default=50_000)
    parser.add_argument("--needs", type=int, default=2_000)
    parser.add_argument("--seeds", default="0-20", help="such as 0-20 (the last not included)")
    given = parser.parse_args(words)
    if not given.fresh and not given.settled:
        print_rows(ROWS, given.names, COMMAND)
        return
    first, _, last = given.seeds.partition("-")
    seeds = range(int(first), int(last or int(first) + 1))
    timer = time_fresh if given.fresh else time_settled
    draw = one_cluster if given.one_cluster else draw_shape
    found = _measured(timer, draw, given.machines, given.needs, seeds)
    figures = ", ".join(f"p{q} {percentile(found, q):.1f}" for q in (50, 99, 100))
    print(f"{len(found)} shapes, ms: {figures}; worst: {worst_of(found).shape.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
