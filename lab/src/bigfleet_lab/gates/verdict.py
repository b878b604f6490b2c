"""Measurements against gates.

A gate that applies and has no value (nothing measured, not a number, too few samples) fails the
run. One that the profile or the substrate leaves out, with a reason, does not fail it, and makes it
incomplete. A goal is reported, and fails the run only where goals are enforced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from bigfleet_lab.gates.catalogue import GATES, Gate


@dataclass(frozen=True, slots=True)
class GateMeasurement:
    """What was measured for a gate."""

    value: float | None
    samples: int = 1
    source: str = ""
    lo: float | None = None
    hi: float | None = None
    """The bucket, where the value comes from a histogram."""


@dataclass(frozen=True, slots=True)
class GateRule:
    """A gate as one run has it."""

    gate: Gate
    slo: float | None
    """None reports without gating."""
    goal: float | None = None


@dataclass(slots=True)
class GateVerdict:
    """How a run did."""

    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    unmeasured: list[str] = field(default_factory=list)
    goal_failures: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)


def judge(
    rules: Iterable[GateRule],
    measured: Mapping[str, GateMeasurement],
    skip: Mapping[str, str],
    *,
    enforce_goals: bool = False,
) -> GateVerdict:
    """Every rule against what was measured, in the order of the catalogue."""
    verdict = GateVerdict()
    by_name = {rule.gate.name: rule for rule in rules}
    for name in GATES:
        if name not in by_name:
            continue
        if name in skip:
            verdict.skipped[name] = skip[name]
            continue
        _judge_one(by_name[name], measured.get(name, GateMeasurement(None, 0)), verdict)
    if enforce_goals:
        verdict.failures += [text for text in verdict.goal_failures if text not in verdict.failures]
    return verdict


def _judge_one(rule: GateRule, found: GateMeasurement, verdict: GateVerdict) -> None:
    gate, value = rule.gate, found.value
    usable = value is not None and isfinite(value) and value != -1 and found.samples >= gate.samples
    passed = usable and value is not None and _keeps(gate, value, rule.slo)
    goal_met = usable and value is not None and _keeps(gate, value, rule.goal)
    entry: dict[str, Any] = {
        "value": value if value is not None and isfinite(value) else None,
        "slo": rule.slo, "goal": rule.goal, "passed": passed, "goalMet": goal_met,
        "unit": gate.unit, "source": found.source or gate.measured, "samples": found.samples,
    }  # fmt: skip
    if found.hi is not None:
        entry |= {"lo": found.lo, "hi": found.hi if isfinite(found.hi) else None}
    verdict.metrics[gate.name] = entry
    if not usable:
        verdict.unmeasured.append(gate.name)
        verdict.failures.append(
            f"{gate.name}: not measured ({found.samples} of {gate.samples} samples)"
        )
    elif not passed:
        sign = "at least" if gate.at_least else "at most"
        verdict.failures.append(f"{gate.name}: {value:g} {gate.unit}, {sign} {rule.slo:g} is asked")
    if usable and not goal_met:
        verdict.goal_failures.append(
            f"{gate.name}: {value:g} {gate.unit}, the goal is {rule.goal:g}"
        )


def _keeps(gate: Gate, value: float, limit: float | None) -> bool:
    if limit is None:
        return True
    return value >= limit if gate.at_least else value <= limit
