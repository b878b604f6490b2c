"""Status and verdict: the table of the specification, row by row."""

import pytest

from bigfleet_conformance.registry import Profile, all_behaviours
from bigfleet_conformance.results import (
    CheckResult,
    Findings,
    Result,
    Status,
    Verdict,
    exit_code,
    required_by,
    verdict,
    worse,
)

PASSED, FAILED, SKIPPED = Status.PASSED, Status.FAILED, Status.SKIPPED
BASELINE = [CheckResult("FullLifecycle", "lifecycle", PASSED)]


def judged(*statuses: Status, partial: bool = False, baseline: Status = PASSED) -> Verdict:
    results = {f"B{n}": Result(f"B{n}", status) for n, status in enumerate(statuses)}
    checks = [CheckResult("one", "group", baseline)]
    return verdict(results, results, checks, partial=partial, baseline_due=True)


def test_all_passed_is_a_certificate() -> None:
    assert judged(PASSED, PASSED, SKIPPED) is Verdict.CERTIFIED


def test_one_failure_fails() -> None:
    assert judged(PASSED, FAILED, Status.ERROR) is Verdict.FAILED


@pytest.mark.parametrize("status", [Status.ERROR, Status.NOT_IMPLEMENTED, Status.NOT_RUN])
def test_what_did_not_run_is_no_certificate(status: Status) -> None:
    assert judged(PASSED, status) is Verdict.INCOMPLETE


def test_a_behaviour_without_a_result_counts_as_not_run() -> None:
    assert verdict(["B1"], {}, BASELINE, partial=False, baseline_due=True) is Verdict.INCOMPLETE


def test_nothing_required_is_no_certificate() -> None:
    assert verdict([], {}, BASELINE, partial=False, baseline_due=True) is Verdict.INCOMPLETE


def test_a_failed_baseline_fails() -> None:
    assert judged(PASSED, baseline=FAILED) is Verdict.FAILED


def test_a_baseline_that_is_due_and_did_not_run_is_no_certificate() -> None:
    results = {"B1": Result("B1", PASSED)}
    assert verdict(results, results, [], partial=False, baseline_due=True) is Verdict.INCOMPLETE


def test_a_partial_run_is_incomplete_at_best() -> None:
    assert judged(PASSED, partial=True) is Verdict.INCOMPLETE
    assert judged(FAILED, partial=True) is Verdict.FAILED


def test_exit_codes() -> None:
    assert exit_code(Verdict.CERTIFIED, partial=False, asked=[PASSED]) == 0
    assert exit_code(Verdict.FAILED, partial=True, asked=[FAILED]) == 1
    assert exit_code(Verdict.INCOMPLETE, partial=False, asked=[PASSED]) == 1
    assert exit_code(Verdict.INCOMPLETE, partial=True, asked=[PASSED, SKIPPED]) == 0
    assert exit_code(Verdict.INCOMPLETE, partial=True, asked=[PASSED, Status.ERROR]) == 1


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        (PASSED, FAILED, FAILED),
        (Status.ERROR, PASSED, Status.ERROR),
        (FAILED, Status.ERROR, FAILED),
        (SKIPPED, PASSED, PASSED),
    ],
)
def test_of_two_lanes_the_worse_counts(one: Status, other: Status, wanted: Status) -> None:
    first, second = Result("B1", one, "core", "a", 1.0), Result("B1", other, "slow", "b", 2.0)
    both = worse(first, second)
    assert both.status is wanted
    assert both.lane == "core+slow"
    assert both.duration_s == 3.0


def test_findings_keep_the_worse() -> None:
    findings = Findings()
    findings.add(Result("B1", FAILED, "core", "why"))
    findings.add(Result("B1", PASSED, "slow"))
    assert findings.results["B1"].status is FAILED
    assert findings.results["B1"].reason == "why"


def test_the_base_scope_does_not_require_the_additional_ones() -> None:
    rows = all_behaviours()
    assert required_by(rows["B2001"], [Profile.CORE], "full")
    assert not required_by(rows["B2001"], [Profile.CORE], "base")
    assert required_by(rows["B101"], [Profile.CORE], "base")


def test_owned_hardware_needs_no_delete_row() -> None:
    rows = all_behaviours()
    assert not required_by(rows["B109"], [Profile.BARE_METAL], "full")
    assert required_by(rows["B204"], [Profile.BARE_METAL], "full")
