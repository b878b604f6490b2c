"""What is acquired costs little more than the optimum an exact solver finds for the same choice."""

from collections.abc import Callable

import numpy as np
import pytest

from cost_quality import compare_fleet, drawn_fleet, fleet
from fleets import Case
from sizes import many

MEAN, NEARLY_ALL = 0.03, 0.20


@pytest.mark.parametrize(
    ("of_seed", "fleets"),
    [(fleet, many(change=120, nightly=500, mutant=15)), (drawn_fleet, many(40, 500, 5))],
)
def test_the_cost_of_what_is_acquired_is_near_the_optimum(
    of_seed: Callable[[int], Case], fleets: int
) -> None:
    excess = np.array([compare_fleet(of_seed(seed)).excess for seed in range(fleets)])
    p95, worst = np.quantile(excess, 0.95), int(excess.argmax())
    summary = (
        f"{fleets} fleets: mean +{excess.mean():.2%}, p95 +{p95:.2%}, "
        f"worst +{excess.max():.2%} (seed {worst}), optimal in {(excess == 0).mean():.0%}"
    )
    print(summary)  # noqa: T201
    assert excess.min() >= 0, f"cheaper than the optimum: {summary}"
    assert excess.mean() <= MEAN, summary
    assert p95 <= NEARLY_ALL, summary
