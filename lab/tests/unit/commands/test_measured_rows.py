"""Rows of parts that are measured as processes: which figure is held against the bar."""

from __future__ import annotations

import json

import pytest

from bigfleet.cli.errors import FailureError
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_lab.bench.rows import Bar, BarMeasurement, WrongResultError, expect, print_rows, row
from bigfleet_lab.bench_coordinator.reporting import split

MANY = [1.0] * 99 + [9.0]


@pytest.mark.parametrize(
    ("found", "bar", "ok"),
    [
        (BarMeasurement(MANY), 2.0, True),
        (BarMeasurement(MANY, counts="max"), 2.0, False),
        (BarMeasurement(MANY, most_mean=1.0), 2.0, False),
        (BarMeasurement(value=3.0), 3.0, True),
        (BarMeasurement(value=3.1), 3.0, False),
    ],
)
def test_one_figure_counts(found: BarMeasurement, bar: float, ok: bool) -> None:
    assert row("x", Bar(lambda: found, bar, "s"), "make bench")["ok"] is ok


def test_more_may_be_better() -> None:
    assert row("x", Bar(lambda: BarMeasurement(value=5.0), 4.0, "per second", "higher"), "c")["ok"]
    assert not row("x", Bar(lambda: BarMeasurement(value=3.0), 4.0, "per second", "higher"), "c")[
        "ok"
    ]


@pytest.mark.parametrize("error", [WrongResultError("lost one"), FailureError("lost one")])
def test_a_wrong_result_has_no_figure(error: Exception) -> None:
    def measure() -> BarMeasurement:
        raise error

    made = row("x", Bar(measure, 1.0, "s"), "c")
    assert (made["ok"], made["value"], made["p99"], made["complaint"]) == (
        False, None, None, "lost one"
    )  # fmt: skip


def test_what_did_not_happen_is_refused() -> None:
    with pytest.raises(WrongResultError, match="nothing moved"):
        expect(False, "nothing moved")


def test_rows_are_chosen_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {name: Bar(lambda: BarMeasurement(value=1.0), 1.0, "s") for name in ("a.1", "a.2")}
    print_rows(rows, ["a.2"], "c")
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == ["a.2"]
    with pytest.raises(SystemExit, match=r"'b' is not a row: use one of a\.1, a\.2"):
        print_rows(rows, ["b"], "c")


def test_the_revision_of_large_assignments_is_read_without_reading_them() -> None:
    answer = pb.ReportAck(coordinator_term=7, acknowledged=True)
    small, revision = split(answer.SerializeToString())
    assert (pb.ReportAck.FromString(small), revision) == (answer, 0)
    answer.assignments.revision = 1 << 60
    answer.assignments.clusters.extend(["c-1", "c-2"])
    answer.assignments.foreign_domains.add(topology_key="k", topology_value="v", shard_id="s")
    small, revision = split(answer.SerializeToString())
    assert revision == 1 << 60
    assert pb.ReportAck.FromString(small).coordinator_term == 7
