"""`make dst`: the whole fleet on virtual time, one run per seed, on all cores.

Prints a line per seed and, for a seed that breaks something, what was broken, the events before it
and the command that shows it again. `--trace FILE` with one seed writes every event.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).parent.parent
SUPPORT = ROOT / "bigfleet" / "tests" / "support"
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba"))


def run(seed: int, sink: TextIO | None = None) -> tuple[bool, str, float]:
    """One seed in this process: whether it held, a report, and the seconds of a core it took."""
    if str(SUPPORT) not in sys.path:
        sys.path.insert(0, str(SUPPORT))
    from sim.run import run_seed
    from sim.shards import build

    result = run_seed(seed, build, sink)
    return result.ok, result.report(), result.cpu_seconds


def main(argv: Sequence[str]) -> int:
    """Run the seeds; 1 when any of them broke something."""
    parser = argparse.ArgumentParser(prog="make dst", description=__doc__)
    parser.add_argument("--seeds", type=int, default=30, help="how many seeds")
    parser.add_argument("--base", type=int, default=1, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at once")
    parser.add_argument("--trace", type=Path, help="write every event of a single seed")
    options = parser.parse_args(argv)
    if options.seeds < 1:
        print(f"SEEDS={options.seeds}: run at least one", file=sys.stderr)
        return 2
    begun = time.perf_counter()
    if options.seeds == 1:
        failed = _one(options.base, options.trace)
    else:
        failed = _many(range(options.base, options.base + options.seeds), options.jobs)
    seconds = time.perf_counter() - begun
    rate = 60 * options.seeds / seconds
    print(f"{options.seeds} seeds in {seconds:.0f} s, {rate:.1f} a minute, {failed} broken")
    return 1 if failed else 0


def _one(seed: int, trace: Path | None) -> int:
    if trace is None:
        ok, report, _ = run(seed)
    else:
        with trace.open("w", encoding="utf-8") as sink:
            ok, report, _ = run(seed, sink)
    print(report)
    return 0 if ok else 1


def _many(seeds: range, jobs: int) -> int:
    failed, cores = 0, 0.0
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        for future in as_completed([pool.submit(run, seed) for seed in seeds]):
            ok, report, seconds = future.result()
            failed += not ok
            cores += seconds
            print(f"{report} ({seconds:.1f} s)" if ok else report, flush=True)
    print(f"{cores / len(seeds):.1f} s of a core for each")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
