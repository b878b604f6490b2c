"""How old this process is."""

from __future__ import annotations

import subprocess
import sys
import time

from bigfleet.observe.process import process_age

TELL = "from bigfleet.observe.process import process_age as age; print(age())"


def test_a_process_is_as_old_as_the_kernel_says_its_imports_included() -> None:
    begin = time.monotonic()
    said = subprocess.run([sys.executable, "-c", TELL], capture_output=True, check=True, text=True)
    took = time.monotonic() - begin
    tick = 0.02
    assert 0 < float(said.stdout) <= took + tick


def test_it_grows_with_the_clock() -> None:
    before, began = process_age(), time.monotonic()
    after = process_age()
    assert before <= after <= before + (time.monotonic() - began) + 0.02
