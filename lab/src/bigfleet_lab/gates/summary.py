"""summary.json: what ran, what was measured, and whether it passed.

`passed` is true exactly when `failures` is empty. A run that ended early has its partial summary:
it did not pass, and its first failure says so. The file is replaced as a whole, so that a reader
never sees half of one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bigfleet_lab.gates.verdict import GateVerdict

SCHEMA: Final = "bigfleet.io/scaletest-summary/v1"
EXIT_PASSED, EXIT_FAILED, EXIT_INPUT, EXIT_BROKEN = 0, 1, 2, 3


@dataclass(slots=True)
class RunSummary:
    """A summary on its way to be written."""

    identity: Mapping[str, Any]
    """schema, runId, profile, seed and what else says which run this is."""
    scale: Mapping[str, Any] = field(default_factory=dict)
    phases: Mapping[str, Any] = field(default_factory=dict)
    actions: Sequence[Mapping[str, Any]] = ()
    reported: Mapping[str, Any] = field(default_factory=dict)
    verdict: GateVerdict = field(default_factory=GateVerdict)
    broken: str = ""
    """What kept the run from its end."""
    full_size: bool = False
    ended_at: str = ""

    @property
    def failures(self) -> list[str]:
        """In order: what broke the run, gates, actions."""
        found = [self.broken] if self.broken else []
        found += self.verdict.failures
        return found + [
            f"{each['action']}: {each['assertError']}"
            for each in self.actions
            if each.get("assertError")
        ]

    def document(self) -> dict[str, Any]:
        """As it is written."""
        failures = self.failures
        return {
            **self.identity,
            "endedAt": self.ended_at,
            "scale": dict(self.scale),
            "metrics": self.verdict.metrics,
            "reported": dict(self.reported),
            "phases": dict(self.phases),
            "runnerActions": [dict(each) for each in self.actions],
            "unmeasuredSLOs": list(self.verdict.unmeasured),
            "skippedSLOs": [{"gate": g, "reason": r} for g, r in self.verdict.skipped.items()],
            "passed": not failures,
            "failure": failures[0] if failures else "",
            "failures": failures,
            "goalsMet": not self.verdict.goal_failures,
            "goalFailures": list(self.verdict.goal_failures),
            "complete": self.full_size and not self.verdict.skipped and not self.broken,
        }

    @property
    def exit_code(self) -> int:
        """What the command ends with."""
        if self.broken:
            return EXIT_BROKEN
        return EXIT_FAILED if self.failures else EXIT_PASSED

    def write(self, path: Path) -> None:
        """Replace the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".part")
        beside.write_text(json.dumps(self.document(), indent=2) + "\n", encoding="utf-8")
        beside.replace(path)
