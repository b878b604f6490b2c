"""The runner with real processes: a run that is interrupted leaves a summary and no process.

The deep tests run what docs/guides/scale-tests.md tells a reader to type.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

RUN = (sys.executable, "-m", "bigfleet_scaletest.main", "run", "--profile", "dev-50", "--ci")
ROOT = Path(__file__).parents[3]
TOOLS = {**os.environ, "PYTHONPATH": "tools"}
WAIT_SECONDS = 100.0


def summary(folder: Path) -> dict[str, Any]:
    path = folder / "dev-50@ci" / "summary.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def children(pid: int) -> set[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(each) for each in found}


def running(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists() and not zombie(pid)}


def zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def until(holds: Any) -> Any:
    deadline = time.monotonic() + WAIT_SECONDS
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 3),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, marks=pytest.mark.exhaustive),
    ],
)
def test_a_run_that_is_killed_ends_what_it_started_and_leaves_a_partial_summary(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    runner = subprocess.Popen([*RUN, "--output", str(tmp_path)], stderr=subprocess.PIPE)
    try:
        started = until(lambda: len(found := children(runner.pid)) >= 3 and found)
        until(lambda: summary(tmp_path))
        os.kill(runner.pid, number)
        assert runner.wait(timeout=WAIT_SECONDS) == code
    finally:
        if runner.poll() is None:
            runner.kill()
            runner.wait()
        if runner.stderr is not None:
            runner.stderr.close()
    until(lambda: not running(started))
    written = summary(tmp_path)
    assert written["passed"] is False
    assert written["complete"] is False
    words = "interrupted in the phase" if number == signal.SIGTERM else "was killed before its end"
    assert words in written["failure"]


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_a_leader_that_is_killed_is_followed_and_loses_nothing(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "tools/etcd.py"], cwd=ROOT, env=TOOLS, capture_output=True, check=True
    )
    etcd = found.stdout.decode().split()[0]
    words = [*RUN[:5], "failover-leader-kill", "--ci", "--etcd", etcd, "--output", str(tmp_path)]
    finished = subprocess.run([*words, "--quiet"], check=False, capture_output=True)
    assert finished.returncode == 0, finished.stdout.decode()


@pytest.mark.deep
@pytest.mark.timeout(1200)
def test_the_smallest_profile_passes(tmp_path: Path) -> None:
    finished = subprocess.run([*RUN, "--output", str(tmp_path), "--quiet"], check=False)
    found = summary(tmp_path)
    assert finished.returncode == 0, found["failures"]
    assert found["passed"]
    assert {each["gate"] for each in found["skippedSLOs"]} == {
        "operatorNodeStateUpdateP99Seconds",
        "endToEndPodBindP50Seconds",
    }
