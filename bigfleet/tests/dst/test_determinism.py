"""The same seed gives the same trace, byte for byte, in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sizes import many

SUPPORT = Path(__file__).parents[1] / "support"
SECONDS = many(change=80, nightly=240, mutant=80, everything=240)
PROGRAM = """
import sys
from sim.drawing import draw
from sim.run import run_plan
from sim.shards import build
result = run_plan(draw(int(sys.argv[1]), seconds=float(sys.argv[2])), build)
print(result.digest, result.steps, result.failure)
"""


def traced(seed: int, hash_seed: str) -> str:
    """The digest of a short run in a process of its own, where sets of texts have other orders."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(SUPPORT)}
    command = [sys.executable, "-c", PROGRAM, str(seed), str(SECONDS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("seed", "another"), [(32, 20), pytest.param(16, 17, marks=pytest.mark.exhaustive)]
)
def test_a_seed_is_the_same_run_in_every_process(seed: int, another: int) -> None:
    once, again = traced(seed, "1"), traced(seed, "2")
    assert once == again
    assert once != traced(another, "1")
