"""Gates: exact quantiles, and a gate without a value fails the run."""

import json
from math import inf, nan
from pathlib import Path
from random import Random

import pytest

from bigfleet_lab.gates.catalogue import GATES
from bigfleet_lab.gates.quantiles import bucket_quantile, distribution, quantile
from bigfleet_lab.gates.summary import RunSummary
from bigfleet_lab.gates.verdict import GateMeasurement, GateRule, judge

CYCLE = GateRule(GATES["shardCycleDurationP99Seconds"], 5.0, 0.03)
LOAD = GateRule(GATES["loadgenCRsActive"], 0.999)
REPORTED = GateRule(GATES["shardDecisionP99Seconds"], None, 0.003)


def test_a_quantile_is_the_smallest_sample_that_covers_its_share() -> None:
    rng = Random(1)
    for _ in range(300):
        samples = [rng.randint(0, 40) / 4 for _ in range(rng.randint(1, 250))]
        share = rng.choice((0.01, 0.07, 0.5, 0.95, 0.99, 1.0))
        found = quantile(samples, share)
        covering = [
            s for s in samples if sum(x <= s for x in samples) >= share * len(samples) - 1e-9
        ]
        assert found == min(covering)
    assert quantile([], 0.5) is None
    assert distribution([]) is None


def test_the_bucket_of_a_quantile_holds_the_exact_one() -> None:
    rng, bounds = Random(2), (0.1, 0.5, 1.0, 5.0, inf)
    for _ in range(200):
        samples = [rng.expovariate(1.0) for _ in range(rng.randint(1, 80))]
        buckets = {b: float(sum(s <= b for s in samples)) for b in bounds}
        found, exact = bucket_quantile(buckets, 0.99), quantile(samples, 0.99)
        assert found is not None
        assert exact is not None
        assert found.lo < exact <= found.hi
        assert found.samples == len(samples)
    assert bucket_quantile({}, 0.5) is None
    assert bucket_quantile({1.0: 0.0}, 0.5) is None


@pytest.mark.parametrize("value", [None, nan, inf, -1.0])
def test_a_gate_without_a_usable_value_fails_the_run(value: float | None) -> None:
    verdict = judge([CYCLE], {CYCLE.gate.name: GateMeasurement(value, 100)}, {})
    assert verdict.unmeasured == [CYCLE.gate.name]
    assert verdict.failures[0].startswith(f"{CYCLE.gate.name}: not measured")


def test_a_gate_that_was_never_measured_or_too_seldom_fails_the_run() -> None:
    assert judge([CYCLE], {}, {}).unmeasured == [CYCLE.gate.name]
    few = {CYCLE.gate.name: GateMeasurement(0.01, 19)}
    assert "19 of 20 samples" in judge([CYCLE], few, {}).failures[0]
    # Also one that only reports: what was not measured has failed.
    assert judge([REPORTED], {}, {}).failures


def test_a_threshold_is_compared_in_the_direction_of_its_gate() -> None:
    good = {CYCLE.gate.name: GateMeasurement(5.0, 20), LOAD.gate.name: GateMeasurement(0.999)}
    bad = {CYCLE.gate.name: GateMeasurement(5.1, 20), LOAD.gate.name: GateMeasurement(0.998)}
    assert not judge([CYCLE, LOAD], good, {}).failures
    assert [f.split(":")[0] for f in judge([CYCLE, LOAD], bad, {}).failures] == [
        "loadgenCRsActive",
        "shardCycleDurationP99Seconds",
    ]


def test_a_missed_goal_fails_only_where_goals_are_enforced() -> None:
    slow = {CYCLE.gate.name: GateMeasurement(0.5, 20)}
    reported = judge([CYCLE], slow, {})
    assert reported.goal_failures
    assert not reported.failures
    assert judge([CYCLE], slow, {}, enforce_goals=True).failures


def test_a_skipped_gate_makes_a_run_incomplete_and_does_not_fail_it(tmp_path: Path) -> None:
    verdict = judge([CYCLE], {}, {CYCLE.gate.name: "no shard here"})
    summary = RunSummary({"profile": "p"}, verdict=verdict, full_size=True)
    summary.write(tmp_path / "summary.json")
    written = json.loads((tmp_path / "summary.json").read_text())
    assert (written["passed"], written["complete"], summary.exit_code) == (True, False, 0)
    assert written["skippedSLOs"] == [{"gate": CYCLE.gate.name, "reason": "no shard here"}]


def test_the_first_failure_is_what_broke_the_run_then_gates_then_actions() -> None:
    verdict = judge([CYCLE], {}, {})
    action = {"action": "kill-shard-x", "assertError": "no effect"}
    summary = RunSummary({}, verdict=verdict, actions=[action])
    assert summary.exit_code == 1
    assert summary.failures[-1] == "kill-shard-x: no effect"
    summary.broken = "interrupted"
    document = summary.document()
    assert (document["failure"], document["passed"], summary.exit_code) == ("interrupted", False, 3)
