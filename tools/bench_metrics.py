"""The row of bench/results.json about scrapes: what reading /metrics does to a shard's cycles.

One shard of 50,000 machines whose demand keeps changing, as processes over real gRPC. Blocks with
and without scrapes alternate, so that whatever else the machine does meets both alike. Within a
block /metrics is read every second, fifteen times as often as by the charts: with theirs a scrape
would meet one cycle of a thousand, and no p99 would show it. Cycles follow each other closely, so
that three minutes have thousands of them.

The value is the p99 of all cycles with scrapes over the p99 of all cycles without. The other
figures are of the ratios of neighbouring blocks; their spread says how far the value can be
trusted. Prints the row as JSON; progress on stderr.
"""

import json
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Final

from bigfleet.cli.bench_shard.processes import Bench, running
from bigfleet.cli.measured_rows import Bar, Found, expect, print_rows, quantiles
from bigfleet.simulate.workloads import make_workload

MACHINES: Final = 50_000
PAIRS: Final = 9
BLOCK_SECONDS: Final = 7.0
CALM_NANOS: Final = 500_000_000
"""After cycles were asked for; what that cost is not counted."""
SCRAPE_SECONDS: Final = 1.0
LEAST_SERIES: Final = 1_000
LEAST_CYCLES: Final = 2_000
COMMAND: Final = "make bench ONLY=metrics"
FLAGS: Final = ("--min-cycle-gap=5ms",)
BEAT: Final = 3.0


class Scrapes:
    """Reads /metrics as a Prometheus does, while it is told to."""

    def __init__(self, address: str) -> None:
        self._url = f"http://{address}/metrics"
        self._chance = Random(1)
        self.series = 0
        self.milliseconds: list[float] = []

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Around a block with scrapes."""
        over = threading.Event()
        thread = threading.Thread(target=self._read_until, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _read_until(self, over: threading.Event) -> None:
        # At any moment of its second, so that scrapes and cycles do not keep step.
        while not over.wait(SCRAPE_SECONDS * (0.5 + self._chance.random())):
            began = time.perf_counter()
            with urllib.request.urlopen(self._url, timeout=30) as answer:
                text = answer.read().decode()
            self.milliseconds.append((time.perf_counter() - began) * 1e3)
            self.series = sum(1 for line in text.splitlines() if not line.startswith("#"))


class Cycles:
    """The shard's cycles, read after they are over: asking for them is work for the shard too."""

    def __init__(self, bench: Bench) -> None:
        self._shard = bench.shard
        self._last = int(bench.shard.cycles()[-1]["cycle"])

    def block(self) -> list[float]:
        """Milliseconds of the cycles that begin within one block from now."""
        begin = time.time_ns() + CALM_NANOS
        time.sleep(BLOCK_SECONDS)
        end = time.time_ns()
        found = self._shard.cycles(self._last)
        self._last = int(found[-1]["cycle"])
        return [c["wall_ns"] / 1e6 for c in found if begin <= c["start_unix_nanos"] < end]


def scrape_effect() -> Found:
    """Cycle p99 with scrapes over cycle p99 without."""
    needs = len(make_workload("steady", MACHINES).scenario.needs)
    with running("steady", MACHINES, interval=BEAT, flags=FLAGS) as bench:
        bench.shard.wait_cycle("with all demand", 180.0, needs=needs)
        calm = int(bench.shard.cycles()[-1]["cycle"])
        bench.shard.wait_cycle("after the start", 120.0, cycle=calm + 30)
        scrapes = Scrapes(f"127.0.0.1:{bench.shard.http}")
        pairs = list(_blocks(Cycles(bench), scrapes))
    without = [ms for block, _ in pairs for ms in block]
    scraped = [ms for _, block in pairs for ms in block]
    expect(scrapes.series >= LEAST_SERIES, f"only {scrapes.series} series were scraped")
    expect(min(len(without), len(scraped)) >= LEAST_CYCLES, f"only {len(scraped)} cycles were run")
    expect(max(scrapes.milliseconds) <= 100, f"a scrape took {max(scrapes.milliseconds):.0f} ms")
    read = scrapes.milliseconds
    for name, samples in (("without", without), ("with", scraped), ("scrapes", read)):
        shown = {key: round(value, 2) for key, value in quantiles(samples).items()}
        print(f"  {name}: {len(samples)} {json.dumps(shown)}", file=sys.stderr, flush=True)
    ratios = [_p99(block) / _p99(other) for other, block in pairs]
    return Found(samples=ratios, value=round(_p99(scraped) / _p99(without), 3))


def _blocks(cycles: Cycles, scrapes: Scrapes) -> Iterator[tuple[list[float], list[float]]]:
    """Pairs of blocks without and with scrapes."""
    # The first one sees what is left over of the start, and is on no one's side.
    cycles.block()
    for pair in range(PAIRS):
        # Who comes first changes, so that a load that grows or ends is on no one's side.
        without = cycles.block() if pair % 2 else []
        with scrapes.going_on():
            scraped = cycles.block()
        yield without or cycles.block(), scraped


def _p99(milliseconds: Sequence[float]) -> float:
    return quantiles(milliseconds)["p99"]


ROWS: Final = {"metrics.scrape-effect.50000": Bar(scrape_effect, 1.05, "ratio")}


def main(names: Sequence[str]) -> None:
    """Measure."""
    print_rows(ROWS, names, COMMAND)


if __name__ == "__main__":
    main(sys.argv[1:])
