"""The rows of the benchmark have the shape and the names that results are compared by."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from providerkit.bench import provider


def test_the_names_are_those_of_the_bars() -> None:
    names = {name for _, bars in provider.SCENARIOS for name, *_ in bars}
    assert names >= {
        "provider.create.8000", "provider.create-one.8000", "provider.get.8000",
        "provider.list.20000", "provider.start.20000",
    }  # fmt: skip


def test_a_row_is_ok_when_its_figure_meets_the_bar() -> None:
    fast = provider.row("x", [1.0, 2.0, 3.0], 5)
    assert (fast["ok"], fast["p50"], fast["max"], fast["runs"]) == (True, 2.0, 3.0, 3)
    assert not provider.row("x", [9.0], 5)["ok"]
    assert provider.row("x", [1.0], 1000, value=1500, better="higher")["ok"]
    assert not provider.row("x", [1.0], 1000, value=1500, better="higher", ok=False)["ok"]
    none = provider.failed("x", 5, "ms", "lower")
    assert (none["ok"], none["p99"], none["value"]) == (False, None, None)


def test_a_wrong_result_is_refused() -> None:
    with pytest.raises(provider.WrongResultError, match="not so"):
        provider.expect(False, "not so")
