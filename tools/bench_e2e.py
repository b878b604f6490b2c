"""Rows of bench/results.json for pods on a real cluster, as JSON on stdout.

python tools/bench_e2e.py [NAME...]     such as e2e.pods-running.1000, or nothing for both

A control plane, a shard, the kwok provider with a second of latency, an operator and a pod
controller run as processes on this machine; the binaries of `make kube-tools` have to be there.
"""

import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests" / "support"))

from e2e_scenarios import pods_at_once, pods_in_a_row  # noqa: E402 - found by the line above
from real_fleet import Cluster, NotInTimeError, a_fleet  # noqa: E402

from bigfleet_lab.bench.rows import (  # noqa: E402
    Bar,
    BarMeasurement,
    WrongResultError,
    expect,
    print_rows,
)
from kube.plane import control_plane  # noqa: E402

COMMAND: Final = "make bench ONLY=operator"
MEDIAN, ACKNOWLEDGED = 6, 30


@contextmanager
def in_time() -> Iterator[None]:
    """What does not end has no figure, and says so."""
    try:
        yield
    except (TimeoutError, NotInTimeError) as error:
        raise WrongResultError(str(error) or "not done in time") from error


@contextmanager
def a_cluster(slots: int) -> Iterator[Cluster]:
    """A fleet with one cluster."""
    with tempfile.TemporaryDirectory() as folder, control_plane(Path(folder), "east") as plane:
        plane.install(ROOT / "api" / "crd")
        with a_fleet(Path(folder) / "fleet", [plane], slots=slots) as fleet:
            yield fleet.clusters[0]


def pod_to_running() -> BarMeasurement:
    """Two hundred pods that come one after the other."""
    with in_time(), a_cluster(80) as cluster:
        waits = pods_in_a_row(cluster, 200)
    expect(len(waits) == 200, "not every pod ran")
    median = statistics.median(waits)
    expect(median <= MEDIAN, f"half of the pods waited {median:.0f} s or more")
    return BarMeasurement(samples=waits)


def pods_running() -> BarMeasurement:
    """A thousand pods at once."""
    with in_time(), a_cluster(300) as cluster:
        acknowledged, running = pods_at_once(cluster, 1000)
    expect(
        acknowledged <= ACKNOWLEDGED, f"requests were acknowledged after {acknowledged:.0f} s only"
    )
    return BarMeasurement(value=round(running, 1))


ROWS: Final = {
    "e2e.pod-to-running.200": Bar(pod_to_running, 15, "s"),
    "e2e.pods-running.1000": Bar(pods_running, 90, "s"),
}

if __name__ == "__main__":
    print_rows(ROWS, sys.argv[1:], COMMAND)
