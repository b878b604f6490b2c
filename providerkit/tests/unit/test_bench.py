"""The rows of the benchmark have the shape and the names that results are compared by."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from providerkit.bench import certify, churn, provider, rows

SCENARIOS = (*provider.SCENARIOS, *churn.SCENARIOS, *certify.SCENARIOS)


def test_the_names_are_those_of_the_bars() -> None:
    names = {bar.name for scenario in SCENARIOS for bar in scenario.bars}
    assert names == {
        "provider.create.8000", "provider.create-one.8000", "provider.get.8000",
        "provider.list.20000", "provider.start.20000", "provider.reconcile.20000",
        "provider.churn.100000", "conformance.full",
    }  # fmt: skip


def test_a_row_is_ok_when_its_figure_meets_the_bar() -> None:
    fast = rows.row("x", [1.0, 2.0, 3.0], 5)
    assert (fast["ok"], fast["p50"], fast["max"], fast["runs"]) == (True, 2.0, 3.0, 3)
    assert not rows.row("x", [9.0], 5)["ok"]
    assert rows.row("x", [1.0], 1000, value=1500, better="higher")["ok"]
    assert not rows.row("x", [1.0], 1000, value=1500, better="higher", ok=False)["ok"]


def test_a_wrong_result_has_no_figure_and_a_reason() -> None:
    with pytest.raises(rows.WrongResultError, match="not so"):
        rows.expect(False, "not so")
    none = rows.failed(rows.Bar("x", 5, "ms", "lower"), "not so")
    assert (none["ok"], none["p99"], none["value"], none["complaint"]) == (
        False, None, None, "not so",
    )  # fmt: skip


def test_of_several_rounds_the_one_in_the_middle_counts() -> None:
    rounds = [[rows.row("x", [time], 5)] for time in (9.0, 1.0, 3.0)]
    assert [row["p99"] for row in rows.middle(rounds)] == [3.0]
