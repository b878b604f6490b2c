"""Whole fleets on virtual time: nothing is broken, whatever goes wrong.

Some seeds with every change, more in CI, a thousand in `make test-deep`, and there also all that
once failed. A failure prints the command that shows it again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.run import run_seed
from sim.shards import build

REGRESSIONS = Path(__file__).with_name("regressions.txt")
EVERY_CHANGE = (3, 20, 32, 119)
"""Light trouble, medium and storm; one shard, two and three; with quotas and without."""
IN_CI = (2, 7, 8, 10, 11, 28, 34, 76, 84, 92, 96)
NIGHTLY = range(1_001, 2_001)


def remembered_seeds() -> list[int]:
    lines = REGRESSIONS.read_text(encoding="utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


def holds(seed: int) -> None:
    result = run_seed(seed, build)
    assert result.ok, result.report()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "seed",
    [*EVERY_CHANGE, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in IN_CI)],
)
def test_a_fleet_in_trouble_keeps_its_promises(seed: int) -> None:
    holds(seed)


@pytest.mark.deep
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", sorted({*NIGHTLY, *remembered_seeds()}))
def test_a_thousand_fleets_in_trouble_keep_their_promises(seed: int) -> None:
    holds(seed)
