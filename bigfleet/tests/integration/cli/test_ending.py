"""SIGTERM ends a process within five seconds, whatever a thread of it does."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

WITHIN_S = 5.0
STUCK = """
import time
from bigfleet.decision import Engine

def decide(*_parts, **_options):
    print("deciding", flush=True)
    ends = time.monotonic() + 90
    while time.monotonic() < ends:
        pass

Engine.decide = decide
from bigfleet.cli.main import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda each: each.name)
def test_a_signal_ends_a_shard_during_a_decision_that_does_not_end(
    number: signal.Signals, tmp_path: Path
) -> None:
    options = [
        "--shard-id=s-1", "--listen=127.0.0.1:0", "--metrics-addr=127.0.0.1:0",
        f"--data-dir={tmp_path}", "--cycle-interval=1s",
    ]  # fmt: skip
    shard = subprocess.Popen(
        [sys.executable, "-c", STUCK, "shard", *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert shard.stdout is not None
        shown = ""
        while "deciding\n" not in shown:
            line = shard.stdout.readline()
            assert line, shown
            shown += line
        begun = time.monotonic()
        shard.send_signal(number)
        rest, _ = shard.communicate(timeout=60)
        assert time.monotonic() - begun < WITHIN_S
        assert "signal received, shutting down" in rest
    finally:
        shard.kill()
        shard.wait()
        assert shard.stdout is not None
        shard.stdout.close()
