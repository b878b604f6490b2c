"""Tracing a request: what counts as a function on the way, and what the recorder writes."""

import os
import subprocess
import sys
from pathlib import Path

import trace_way
from trace_way import IDLE, REQUEST, FirstCall, WayCount, count, way_of

CODE = """
import mmap, sys
sys.path.insert(0, sys.argv[1] + "/src/pack")
import steps
with open(sys.argv[2], "r+b") as file:
    window = mmap.mmap(file.fileno(), 1)
    for number in (1, 2):
        window[0] = number
        steps.always()
        if number == 2:
            steps.only_for_the_request()
"""


def call(at: int, name: str, file: str = "a/src/one.py", window: int = REQUEST) -> FirstCall:
    return FirstCall(at, window, file, name)


def test_what_runs_anyway_is_not_on_the_way() -> None:
    calls = [call(1, "tick", window=IDLE), call(2, "tick"), call(3, "acquire")]
    assert [c.name for c in way_of(calls)] == ["acquire"]
    assert [c.name for c in way_of(calls, also_idle=True)] == ["tick", "acquire"]


def test_a_function_counts_once_at_its_first_call_and_modules_do_not_count() -> None:
    calls = [call(3, "f"), call(1, "f"), call(2, "<module>"), call(4, "f.<locals>.<lambda>")]
    assert way_of(calls) == [call(1, "f")]


def test_a_change_of_folder_is_a_step_inside_one_process() -> None:
    there, back = call(1, "f"), call(3, "g")
    away = call(2, "h", "b/src/two.py")
    assert count({"shard": [there, away, back]}) == WayCount(3, 2, 2, 2)
    assert count({"shard": [there], "operator": [away]}) == WayCount(2, 2, 2, 0)


def test_a_process_is_known_by_its_command() -> None:
    assert trace_way.role_of(["/x/bin/python", "/x/bin/bigfleet", "shard"]) == "bigfleet shard"
    assert trace_way.role_of(["/x/bin/bigfleet", "pod-controller"]) == ""


def test_the_recorder_writes_the_first_call_in_each_window(tmp_path: Path) -> None:
    package = tmp_path / "checkout" / "src" / "pack"
    package.mkdir(parents=True)
    (package / "steps.py").write_text("def always(): pass\ndef only_for_the_request(): pass\n")
    (tmp_path / "window").write_bytes(b"\0")
    checkout = str(tmp_path / "checkout")
    words = [sys.executable, "-c", CODE, checkout, str(tmp_path / "window")]
    environment = {
        **os.environ,
        "PYTHONPATH": str(trace_way.RECORDER),
        "TRACE_WAY": str(tmp_path),
        "TRACE_WAY_ROOT": f"{checkout}/",
    }
    subprocess.run(words, env=environment, check=True, timeout=60)
    (recorded,) = tmp_path.glob("*.calls")
    _, calls = trace_way.read_calls(recorded)
    named = [(c.window, c.file, c.name) for c in calls if c.counts]
    steps = "src/pack/steps.py"
    assert named == [
        (IDLE, steps, "always"),
        (REQUEST, steps, "always"),
        (REQUEST, steps, "only_for_the_request"),
    ]
