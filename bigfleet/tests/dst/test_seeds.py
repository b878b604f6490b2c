"""Whole fleets on virtual time: nothing is broken, whatever goes wrong.

Twenty seeds with every change, a thousand in `make test-deep`, and always those that once failed.
A failure prints the command that shows it again.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sim.run import run_seed
from sim.shards import build

pytestmark = pytest.mark.deep

REGRESSIONS = Path(__file__).with_name("regressions.txt")
EVERY_CHANGE = range(1, 21)
NIGHTLY = range(1_001, 2_001)


def remembered_seeds() -> list[int]:
    lines = REGRESSIONS.read_text(encoding="utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


def seeds() -> list[int]:
    drawn = NIGHTLY if os.environ.get("MODE") == "nightly" else EVERY_CHANGE
    return sorted({*drawn, *remembered_seeds()})


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", seeds())
def test_a_fleet_in_trouble_keeps_its_promises(seed: int) -> None:
    result = run_seed(seed, build)
    assert result.ok, result.report()
