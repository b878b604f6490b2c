"""Results: what became of each behaviour, and what that makes of the run.

Pure values and functions: which rows are required, when a skip is legal, and the verdict.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from bigfleet_conformance.registry import Behaviour, Capability, Profile

BARE_METAL_FREE = frozenset({Capability.DELETE})


class Status(StrEnum):
    """How a behaviour ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"
    NOT_IMPLEMENTED = "not_implemented"
    NOT_RUN = "not_run"
    NOT_APPLICABLE = "not_applicable"


class Verdict(StrEnum):
    """What the run says about the provider."""

    CERTIFIED = "CERTIFIED"
    INCOMPLETE = "INCOMPLETE"
    FAILED = "FAILED"


class Baseline(StrEnum):
    """What the 93 behaviours of the canonical catalogue say about the provider."""

    COMPATIBLE = "COMPATIBLE"
    INCOMPLETE = "INCOMPLETE"
    FAILED = "FAILED"


WORST_FIRST = (
    Status.FAILED,
    Status.ERROR,
    Status.PASSED,
    Status.SKIPPED,
    Status.NOT_APPLICABLE,
    Status.NOT_RUN,
)
FINE = frozenset({Status.PASSED, Status.SKIPPED, Status.NOT_APPLICABLE})


@dataclass(frozen=True, slots=True)
class Result:
    """One behaviour on one lane."""

    id: str
    status: Status
    lane: str = ""
    reason: str = ""
    duration_s: float = 0.0
    evidence: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of the baseline."""

    name: str
    group: str
    status: Status
    reason: str = ""
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Claim:
    """A capability, who claimed it, and whether it was seen."""

    capability: Capability
    source: str
    confirmed: bool


@dataclass(frozen=True, slots=True)
class LaneRecord:
    """One lane of a run."""

    name: str
    subject: str
    subject_version: str
    boot_s: float
    duration_s: float


@dataclass(slots=True)
class Findings:
    """Everything a run found out, before it becomes a report."""

    results: dict[str, Result] = field(default_factory=dict)
    baseline: list[CheckResult] = field(default_factory=list)
    lanes: list[LaneRecord] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Keep the worse of two results of one behaviour."""
        known = self.results.get(result.id)
        self.results[result.id] = result if known is None else worse(known, result)


def worse(one: Result, other: Result) -> Result:
    """Of two runs of a behaviour the worse counts; the time is that of both."""
    first, second = sorted((one, other), key=lambda r: WORST_FIRST.index(r.status))
    lanes = "+".join(dict.fromkeys(lane for lane in (one.lane, other.lane) if lane))
    return Result(
        first.id,
        first.status,
        lanes,
        first.reason or second.reason,
        one.duration_s + other.duration_s,
        first.evidence,
    )


def required_by(behaviour: Behaviour, profiles: Iterable[Profile], scope: str) -> bool:
    """Whether a certificate for these profiles needs this behaviour."""
    if scope == "base" and behaviour.additional:
        return False
    core = Profile.CORE in behaviour.profiles
    for profile in profiles:
        if profile in behaviour.profiles:
            return True
        if core and profile in (Profile.CLOUD, Profile.SPOT):
            return True
        if core and profile is Profile.BARE_METAL and Capability.DELETE not in behaviour.needs:
            return True
    return False


def verdict(
    required: Iterable[str],
    results: Mapping[str, Result],
    baseline: Sequence[CheckResult],
    *,
    partial: bool,
    baseline_due: bool,
) -> Verdict:
    """The table of the specification."""
    statuses = [results[id].status if id in results else Status.NOT_RUN for id in required]
    checks = [check.status for check in baseline]
    if Status.FAILED in statuses or Status.FAILED in checks:
        return Verdict.FAILED
    unfinished = {Status.ERROR, Status.NOT_IMPLEMENTED, Status.NOT_RUN}
    if partial or not statuses or unfinished & set(statuses) or Status.ERROR in checks:
        return Verdict.INCOMPLETE
    if baseline_due and not baseline:
        return Verdict.INCOMPLETE
    return Verdict.CERTIFIED


def baseline_verdict(base: Iterable[Status]) -> Baseline:
    """Of the statuses of all canonical behaviours, whatever profiles were chosen."""
    statuses = set(base)
    if Status.FAILED in statuses:
        return Baseline.FAILED
    return Baseline.COMPATIBLE if statuses <= FINE else Baseline.INCOMPLETE


def extended_verdict(required: Sequence[Status]) -> Verdict:
    """Of the statuses of the additional behaviours that the chosen profiles require."""
    if Status.FAILED in required:
        return Verdict.FAILED
    return Verdict.CERTIFIED if required and set(required) <= FINE else Verdict.INCOMPLETE


def exit_code(outcome: Verdict, *, partial: bool, asked: Iterable[Status]) -> int:
    """0 for a certificate, and for a partial run in which all that was asked for passed."""
    if outcome is Verdict.CERTIFIED:
        return 0
    if outcome is Verdict.INCOMPLETE and partial:
        return 0 if all(s in FINE for s in asked) else 1
    return 1
