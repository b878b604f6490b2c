"""`--help | head` ends without a traceback, whichever program it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
PROGRAMS = [
    "bigfleet", "bigfleet shard", "bigfleetctl", "kubectl-bigfleet", "bigfleet-conformance",
    "bigfleet-provider-fake", "bigfleet-provider-kwok",
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_reader_that_has_seen_enough_gets_no_traceback(program: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [str(BIN / program.split()[0]), *program.split()[1:], "--help"],
            stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert ended.stderr == ""
