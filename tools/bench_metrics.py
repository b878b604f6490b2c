"""The row of bench/results.json about scrapes: what reading /metrics does to a shard's cycles.

One shard of 50,000 machines whose demand keeps changing, as processes over real gRPC. Stretches
with and without scrapes alternate, so that whatever else the machine does meets both alike. Within
a stretch /metrics is read every 15 seconds, as with the charts. Cycles come eight times as often as
a shard makes them by itself, so that a minute has a thousand. Prints the row as JSON; progress on
stderr.
"""

import json
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from bigfleet.cli.bench_shard.processes import Bench, running
from bigfleet.cli.measured_rows import Bar, Found, expect, print_rows, quantiles
from bigfleet.simulate.workloads import make_workload

MACHINES: Final = 50_000
PAIRS: Final = 2
STRETCH_SECONDS: Final = 12.0
CALM_NANOS: Final = 500_000_000
"""After cycles were asked for; what that cost is not counted."""
SCRAPE_SECONDS: Final = 15.0
LEAST_SERIES: Final = 1_000
LEAST_CYCLES: Final = 100
COMMAND: Final = "make bench ONLY=metrics"
FLAGS: Final = ("--min-cycle-gap=25ms",)
BEAT: Final = 3.0


class Scrapes:
    """Reads /metrics as a Prometheus does, while it is told to."""

    def __init__(self, address: str) -> None:
        self._url = f"http://{address}/metrics"
        self.series = 0
        self.milliseconds: list[float] = []

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Around a stretch with scrapes."""
        over = threading.Event()
        thread = threading.Thread(target=self._read_until, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _read_until(self, over: threading.Event) -> None:
        # In the middle of each interval, so that a stretch of one interval has one scrape.
        pause = SCRAPE_SECONDS / 2
        while not over.wait(pause):
            pause = SCRAPE_SECONDS
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

    def stretch(self) -> list[float]:
        """Milliseconds of the cycles that begin within one stretch from now."""
        begin = time.time_ns() + CALM_NANOS
        time.sleep(STRETCH_SECONDS)
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
        without: list[float] = []
        scraped: list[float] = []
        cycles = Cycles(bench)
        # The first one sees what is left over of the start, and is on no one's side.
        cycles.stretch()
        for pair in range(PAIRS):
            # Who comes first changes, so that a load that grows or ends is on no one's side.
            if pair % 2:
                without += cycles.stretch()
            with scrapes.going_on():
                scraped += cycles.stretch()
            if not pair % 2:
                without += cycles.stretch()
    expect(scrapes.series >= LEAST_SERIES, f"only {scrapes.series} series were scraped")
    expect(min(len(without), len(scraped)) >= LEAST_CYCLES, f"only {len(scraped)} cycles were run")
    expect(max(scrapes.milliseconds) <= 100, f"a scrape took {max(scrapes.milliseconds):.0f} ms")
    read = scrapes.milliseconds
    for name, samples in (("without", without), ("with", scraped), ("scrapes", read)):
        shown = {key: round(value, 2) for key, value in quantiles(samples).items()}
        print(f"  {name}: {len(samples)} {json.dumps(shown)}", file=sys.stderr, flush=True)
    return Found(value=round(quantiles(scraped)["p99"] / quantiles(without)["p99"], 3))


ROWS: Final = {"metrics.scrape-effect.50000": Bar(scrape_effect, 1.05, "ratio")}


def main(names: Sequence[str]) -> None:
    """Measure."""
    print_rows(ROWS, names, COMMAND)


if __name__ == "__main__":
    main(sys.argv[1:])
