"""The row of bench/results.json about scrapes: what reading /metrics does to a shard's cycles.

One shard of 50,000 machines whose demand keeps changing, as processes over real gRPC; the shard has
a core of its own where there are several, so that others do not blur what is looked for. Time is
cut into seconds: of every two, one has a scrape and one has none, drawn by lot, so that whatever
else the machine does meets both alike. That is eight times as often as the charts scrape: with
theirs a scrape would meet one cycle of a thousand, and no p99 would show it. Cycles follow each
other closely, so that three minutes have thousands of them.

Of each tenth of the time the p99 of all cycles in seconds with a scrape is divided by the p99 of
all others. The value is the median of the ten ratios: a moment at which the machine does something
else would move the p99 of all the time, and moves one of the ten. The other figures are of the ten
as well; their spread says how far the value can be trusted. Prints the row as JSON; progress on
stderr.
"""

import json
import os
import sys
import time
import urllib.request
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

from bigfleet_lab.bench.rows import Bar, BarMeasurement, expect, print_rows, quantiles
from bigfleet_lab.bench_shard.processes import ShardBench, running
from bigfleet_lab.simulate.workloads import make_workload

MACHINES: Final = 50_000
PAIRS: Final = 70
TENTHS: Final = 10
LEAST_SERIES: Final = 1_000
LEAST_CYCLES: Final = 2_000
COMMAND: Final = "make bench ONLY=metrics"
FLAGS: Final = ("--min-cycle-gap=5ms",)
BEAT: Final = 3.0
_NS: Final = 1_000_000_000


class Scrapes:
    """Reads /metrics as a Prometheus does, when it is told to."""

    def __init__(self, address: str) -> None:
        self._url = f"http://{address}/metrics"
        self.series = 0
        self.milliseconds: list[float] = []

    def read(self) -> None:
        """One scrape."""
        began = time.perf_counter()
        with urllib.request.urlopen(self._url, timeout=30) as answer:
            text = answer.read().decode()
        self.milliseconds.append((time.perf_counter() - began) * 1e3)
        self.series = sum(1 for line in text.splitlines() if not line.startswith("#"))


@dataclass(frozen=True, slots=True)
class Second:
    """One second, with or without a scrape."""

    begin: int
    end: int
    has_scrape: bool


def seconds_of(scrapes: Scrapes, chance: Random) -> Iterator[Second]:
    """Seconds in pairs: one with a scrape, one without, in an order drawn by lot."""
    for _ in range(PAIRS):
        for has_scrape in chance.sample((True, False), 2):
            begin = time.time_ns()
            if has_scrape:
                # At any moment, so that scrapes and cycles do not keep step; but not so late that
                # the next second would feel it.
                time.sleep(chance.uniform(0.0, 0.7))
                scrapes.read()
            time.sleep(max(0.0, (begin + _NS - time.time_ns()) / _NS))
            yield Second(begin, time.time_ns(), has_scrape)


def cycles_within(bench: ShardBench, since: int, seconds: Sequence[Second]) -> list[list[float]]:
    """Milliseconds of the cycles that began in each second; asked for when all is over."""
    starts = [second.begin for second in seconds]
    found: list[list[float]] = [[] for _ in seconds]
    for cycle in bench.shard.cycles(since):
        place = bisect_right(starts, cycle["start_unix_nanos"]) - 1
        if place >= 0 and cycle["start_unix_nanos"] < seconds[place].end:
            found[place].append(cycle["wall_ns"] / 1e6)
    return found


def own_core(bench: ShardBench) -> None:
    """Give the shard a core of its own, where there are several."""
    cores = sorted(os.sched_getaffinity(0))
    assert bench.shard.child is not None
    mine = bench.shard.child.process.pid
    for process in (os.getpid(), mine, bench.provider.process.pid, bench.operators.process.pid):
        given = cores[:1] if process == mine else cores[1:] or cores
        for thread in Path(f"/proc/{process}/task").iterdir():
            os.sched_setaffinity(int(thread.name), given)


def p99_ratio(seconds: Sequence[Second], cycles: Sequence[Sequence[float]]) -> float:
    """Cycle p99 in seconds with a scrape over cycle p99 in the others."""
    found = []
    for has_scrape in (True, False):
        chosen = (c for s, c in zip(seconds, cycles, strict=True) if s.has_scrape is has_scrape)
        found.append(quantiles([ms for each in chosen for ms in each])["p99"])
    return found[0] / found[1]


def scrape_effect() -> BarMeasurement:
    """How cycles with scrapes compare with those without."""
    needs = len(make_workload("steady", MACHINES).scenario.needs)
    with running("steady", MACHINES, interval=BEAT, flags=FLAGS) as bench:
        bench.shard.wait_cycle("with all demand", 180.0, needs=needs)
        own_core(bench)
        calm = int(bench.shard.cycles()[-1]["cycle"])
        first = int(bench.shard.wait_cycle("after the start", 120.0, cycle=calm + 300)["cycle"])
        scrapes = Scrapes(f"127.0.0.1:{bench.shard.http}")
        seconds = list(seconds_of(scrapes, Random(1)))
        cycles = cycles_within(bench, first, seconds)
    return judged(seconds, cycles, scrapes)


def judged(
    seconds: Sequence[Second], cycles: Sequence[Sequence[float]], scrapes: Scrapes
) -> BarMeasurement:
    """The figures, if what was measured is what is asked for."""
    arms = {
        name: [ms for s, c in zip(seconds, cycles, strict=True) if s.has_scrape is has for ms in c]
        for name, has in (("without", False), ("with", True))
    }
    for name, samples in (*arms.items(), ("scrapes", scrapes.milliseconds)):
        shown = {key: round(value, 2) for key, value in quantiles(samples).items()}
        print(f"  {name}: {len(samples)} {json.dumps(shown)}", file=sys.stderr, flush=True)
    fewest, slowest = min(map(len, arms.values())), max(scrapes.milliseconds)
    expect(scrapes.series >= LEAST_SERIES, f"only {scrapes.series} series were scraped")
    expect(fewest >= LEAST_CYCLES, f"only {fewest} cycles were run")
    expect(slowest <= 100, f"a scrape took {slowest:.0f} ms")
    tenth = len(seconds) // TENTHS
    parts = [
        p99_ratio(seconds[at : at + tenth], cycles[at : at + tenth])
        for at in range(0, tenth * TENTHS, tenth)
    ]
    print(f"  of all the time: {p99_ratio(seconds, cycles):.3f}", file=sys.stderr, flush=True)
    return BarMeasurement(samples=parts, value=round(median(parts), 3))


ROWS: Final = {"metrics.scrape-effect.50000": Bar(scrape_effect, 1.05, "ratio")}


def main(names: Sequence[str]) -> None:
    """Measure."""
    print_rows(ROWS, names, COMMAND)


if __name__ == "__main__":
    main(sys.argv[1:])
