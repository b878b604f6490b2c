"""`make soak`: a shard under churn, much longer than a test may take.

Without arguments: 50,000 cycles on virtual time, about ten minutes. With `--long`: the real
processes for two hours at 5,000 machines. Exits 1 when a machine is left behind, something waits,
a reclaim had no reason or memory grew.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba"))
sys.path.insert(0, str(ROOT / "bigfleet" / "tests" / "support"))
MOST_GROWTH = 0.02


def short(cycles: int) -> int:
    """Virtual time, one process."""
    from whole.soaking import CYCLES, Soak, run

    begun = time.perf_counter()
    warm_up = Soak.warm_up * cycles // CYCLES
    soaked = run(Soak(cycles=cycles, warm_up=warm_up), lambda text: print(text, flush=True))
    complaints = list(soaked.complaints)
    if soaked.growth > MOST_GROWTH:
        complaints.append(f"memory grew by {soaked.growth:.1%}: {MOST_GROWTH:.0%} is let pass")
    if soaked.unforced:
        complaints.append(f"{soaked.unforced:.0f} reclaims had no reason")
    print(
        f"{soaked.cycles} cycles ({soaked.virtual_hours:.1f} h of the shard's time) in "
        f"{time.perf_counter() - begun:.0f} s, {soaked.per_second:.0f} a second of one core; "
        f"memory {soaked.resident_before / 1e6:.0f} -> {soaked.resident_after / 1e6:.0f} MB; "
        f"at most {soaked.most_waiting} actions waited; {soaked.actions}"
    )
    return _tell(complaints)


def long(seconds: float) -> int:
    """Real processes, real time."""
    from whole.longsoak import run

    with tempfile.TemporaryDirectory(prefix="bigfleet-soak-") as folder:
        complaints = asyncio.run(run(Path(folder), seconds, lambda text: print(text, flush=True)))
    return _tell(complaints)


def _tell(complaints: Sequence[str]) -> int:
    for complaint in complaints:
        print(f"BROKEN: {complaint}")
    print("soak: " + ("broken" if complaints else "fine"))
    return 1 if complaints else 0


def main(argv: Sequence[str]) -> int:
    """One of the two."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--long", action="store_true", help="real processes for two hours")
    parser.add_argument("--cycles", type=int, default=50_000, help="of the short form")
    parser.add_argument("--seconds", type=float, default=7_200.0, help="of the long form")
    options = parser.parse_args(argv)
    return long(options.seconds) if options.long else short(options.cycles)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
