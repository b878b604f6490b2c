"""Rows of bench/results.json for coordinators: those of `bigfleet_lab.bench_coordinator`, and
fail-over, which needs three members of etcd and the faults of the test-suite.

Prints them as JSON; progress on stderr. With names only those rows are measured.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba"))
sys.path.insert(0, str(ROOT / "bigfleet" / "tests" / "support"))

from bigfleet_lab.bench.rows import Bar, BarMeasurement, print_rows  # noqa: E402
from bigfleet_lab.bench_coordinator.__main__ import COMMAND, ROWS  # noqa: E402

RUNS = 5


async def gaps() -> list[float]:
    """Seconds without a leader that serves, for each fault and run."""
    from etcd_members import running
    from replica_faults import FAULTS
    from replicated import three_replicas

    found = []
    with running(3) as cluster, tempfile.TemporaryDirectory(prefix="bigfleet-") as folder:
        async with three_replicas(cluster, "bench", Path(folder)) as fleet:
            for fault, happen in FAULTS.items():
                for _ in range(RUNS):
                    served = await happen(fleet)
                    await fleet.check()
                    print(f"  {fault}: {served.seconds:.2f} s", file=sys.stderr, flush=True)
                    found.append(served.seconds)
    return found


def failover() -> BarMeasurement:
    """Killed, paused, cut off; and a member of etcd killed."""
    return BarMeasurement(asyncio.run(gaps()), counts="max")


def main(names: Sequence[str]) -> None:
    """Measure these, or all."""
    print_rows({**ROWS, "coordinator.failover.3": Bar(failover, 5, "s")}, names, COMMAND)


if __name__ == "__main__":
    main(sys.argv[1:])
