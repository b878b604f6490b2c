"""A long time on a large inventory."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from providerkit.bench import churn


@pytest.mark.timeout(600)
def test_two_minutes_of_churn_on_a_hundred_thousand_machines() -> None:
    (row,) = churn.run(120.0)
    assert row["ok"]
