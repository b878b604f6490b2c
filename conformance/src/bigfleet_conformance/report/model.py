"""The report: one document with everything a run found out, and a digest over all of it."""

import hashlib
import json
import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import metadata
from typing import Any

from bigfleet_conformance.options import Options, Target
from bigfleet_conformance.registry import Area, Behaviour, Profile, all_behaviours, digest
from bigfleet_conformance.results import (
    Claim,
    Findings,
    Result,
    Status,
    Verdict,
    baseline_verdict,
    exit_code,
    extended_verdict,
    required_by,
    verdict,
)

SCHEMA_VERSION = 3
DISTRIBUTION = "bigfleet-conformance"
NEVER_RUN = Result("", Status.NOT_RUN, reason="outside the chosen profiles or left out")


@dataclass(frozen=True, slots=True)
class ReportSubject:
    """Who was looked at."""

    name: str
    version: str
    source: str
    command: str


@dataclass(frozen=True, slots=True)
class Report:
    """The document, and what a caller asks of it most."""

    document: Mapping[str, Any]
    exit_code: int

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        return Verdict(self.document["verdict"])

    def status(self, id: str) -> Status:
        """How a behaviour ended."""
        return Status(self.behaviour(id)["status"])

    def behaviour(self, id: str) -> Mapping[str, Any]:
        """One row."""
        found: Mapping[str, Any] = next(b for b in self.document["behaviors"] if b["id"] == id)
        return found

    def with_status(self, *statuses: Status) -> list[Mapping[str, Any]]:
        """The rows that ended like this."""
        return [b for b in self.document["behaviors"] if b["status"] in statuses]


def suite_version() -> str:
    """The version of this distribution."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "0.0.0"


def digest_of(document: Mapping[str, Any]) -> str:
    """The SHA-256 of everything but the digest itself and the evidence, which each row's own
    `evidence_digest` covers: a stored report that leaves evidence out keeps its digest.
    """
    rest = {key: value for key, value in document.items() if key != "digest"}
    rest["behaviors"] = [
        {key: value for key, value in row.items() if key != "evidence"}
        for row in document["behaviors"]
    ]
    return _sha256(rest)


def evidence_digest(evidence: Sequence[Mapping[str, Any]]) -> str:
    """The SHA-256 of the recorded calls of one behaviour."""
    return _sha256(list(evidence))


def without_evidence(document: Mapping[str, Any]) -> dict[str, Any]:
    """The report as it is stored: rows that passed keep the digest of their evidence only."""
    rows = [
        {**row, "evidence": []} if row["status"] == Status.PASSED else row
        for row in document["behaviors"]
    ]
    return {**document, "behaviors": rows}


def _sha256(value: object) -> str:
    raw = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()


def build(
    *,
    subject: ReportSubject,
    target: Target,
    options: Options,
    profiles: Sequence[Profile],
    claims: Sequence[Claim],
    findings: Findings,
    started: datetime,
    duration_s: float,
    environment: Mapping[str, str],
) -> Report:
    """The report of a run."""
    registry = all_behaviours()
    required = [b.id for b in registry.values() if required_by(b, profiles, options.scope)]
    if options.substrate == "http":
        required = [id for id in required if registry[id].lane != "large"]
    rows = [
        _row(b, findings.results.get(b.id, NEVER_RUN), required=b.id in set(required))
        for b in registry.values()
    ]
    outcome = verdict(
        required,
        findings.results,
        findings.baseline,
        partial=options.partial,
        baseline_due=Profile.CORE in profiles and not options.only,
    )
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "suite": {"version": suite_version(), "registry_digest": digest(registry.values())},
        "provider": {
            "name": subject.name,
            "version": subject.version,
            "source": subject.source,
            "command": subject.command,
        },
        "substrate": options.substrate,
        "scope": options.scope,
        "profiles": [str(profile) for profile in profiles],
        "claims": [
            {"capability": str(c.capability), "source": c.source, "confirmed": c.confirmed}
            for c in claims
        ],
        "environment": {
            **environment,
            "cpus": os.cpu_count() or 1,
            "started": started.isoformat(timespec="seconds"),
            "duration_s": round(duration_s, 3),
            "seed": options.seed,
            "options": _options(options),
        },
        "lanes": [
            {
                "name": lane.name,
                "subject": lane.subject,
                "subject_version": lane.subject_version,
                "boot_s": lane.boot_s,
                "duration_s": lane.duration_s,
            }
            for lane in findings.lanes
        ],
        "baseline": _baseline(findings),
        "behaviors": rows,
        "summary": _summary(rows),
        "limits": findings.limits,
        "partial": options.partial,
        "verdict": str(outcome),
        "verdicts": verdicts(rows),
        "reproduce": reproduce(target, options),
    }
    document["digest"] = digest_of(document)
    asked = [r.status for r in findings.results.values()]
    asked += [c.status for c in findings.baseline]
    return Report(document, exit_code(outcome, partial=options.partial, asked=asked))


def verdicts(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The two verdicts that every report has, from its rows.

    The baseline is the canonical catalogue, complete: a row that no chosen profile ran leaves it
    INCOMPLETE. Extended are this project's additions, as far as the chosen profiles require them.
    """
    base = [row for row in rows if row["area"] != Area.ADDITIONAL]
    added = [row for row in rows if row["area"] == Area.ADDITIONAL and row["required"]]
    profiles = sorted({profile for row in added for profile in row["profiles"]})
    return {
        "baseline": {
            "verdict": str(baseline_verdict(Status(row["status"]) for row in base)),
            **_tally(base),
        },
        "extended": {
            "verdict": str(extended_verdict([Status(row["status"]) for row in added])),
            **_tally(added),
            "profiles": {
                name: _tally([row for row in added if name in row["profiles"]]) for name in profiles
            },
        },
    }


def _tally(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    counts = Counter(row["status"] for row in rows)
    return {
        "behaviors": len(rows),
        "passed": counts[Status.PASSED],
        "failed": counts[Status.FAILED],
        "skipped": counts[Status.SKIPPED] + counts[Status.NOT_APPLICABLE],
    }


def first_line(document: Mapping[str, Any]) -> str:
    """What a report says first: whether the provider is baseline-compatible, by name."""
    provider = document["provider"]
    name = f"{provider['name']} {provider['version']}"
    base = document["verdicts"]["baseline"]
    of = f"of the {base['behaviors']} behaviours of the canonical catalogue"
    match base["verdict"]:
        case "COMPATIBLE":
            skipped = f", {base['skipped']} do not apply" if base["skipped"] else ""
            return f"{name} is baseline-compatible: {base['passed']} {of} passed{skipped}"
        case "FAILED":
            return f"{name} is not baseline-compatible: {base['failed']} {of} failed"
        case _:
            left = base["behaviors"] - base["passed"] - base["skipped"]
            return f"{name}: baseline not decided, {left} {of} have no result in this run"


def _row(behaviour: Behaviour, result: Result, *, required: bool) -> dict[str, Any]:
    return {
        "id": behaviour.id,
        "area": str(behaviour.area),
        "title": behaviour.title,
        "profiles": [str(profile) for profile in behaviour.profiles],
        "capability": [str(need) for need in behaviour.needs],
        "required": required,
        "status": str(result.status),
        "duration_s": round(result.duration_s, 3),
        "lane": result.lane,
        "reason": result.reason,
        "evidence": list(result.evidence),
        "evidence_calls": len(result.evidence),
        "evidence_digest": evidence_digest(result.evidence),
    }


def _baseline(findings: Findings) -> dict[str, Any]:
    counts = Counter(check.status for check in findings.baseline)
    return {
        "tests": len(findings.baseline),
        "passed": counts[Status.PASSED],
        "failed": counts[Status.FAILED] + counts[Status.ERROR],
        "skipped": counts[Status.SKIPPED],
        "checks": [
            {
                "name": check.name,
                "group": check.group,
                "status": str(check.status),
                "reason": check.reason,
                "duration_s": round(check.duration_s, 3),
            }
            for check in findings.baseline
        ],
    }


def _summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    counts = Counter(row["status"] for row in rows)
    needed = [row for row in rows if row["required"]]
    missing = (Status.ERROR, Status.NOT_IMPLEMENTED, Status.NOT_RUN)
    return {
        "total_behaviors": len(rows),
        "passed": counts[Status.PASSED],
        "failed": counts[Status.FAILED],
        "skipped": counts[Status.SKIPPED],
        "errors": counts[Status.ERROR],
        "not_implemented": counts[Status.NOT_IMPLEMENTED],
        "not_run": counts[Status.NOT_RUN],
        "not_applicable": counts[Status.NOT_APPLICABLE],
        "required": len(needed),
        "required_failed": sum(row["status"] == Status.FAILED for row in needed),
        "required_missing": sum(row["status"] in missing for row in needed),
    }


def _options(options: Options) -> dict[str, Any]:
    return {
        "profiles": list(options.profiles),
        "scope": options.scope,
        "claims": list(options.claims),
        "substrate": options.substrate,
        "quick": options.quick,
        "only": list(options.only),
        "skip": list(options.skip),
        "seed_count": options.seed_count,
        "scale_seed": options.scale_seed,
        "soak_s": options.soak_s,
        "port": options.port,
        "jobs": options.jobs,
        "settle_s": options.settle_s,
    }


def reproduce(target: Target, options: Options) -> list[str]:
    """The command that repeats the run."""
    words = ["bigfleet-conformance", "run"]
    if target.address:
        words += ["--target", target.address]
    elif target.provider:
        words += ["--provider", target.provider]
    else:
        words += ["--exec", target.command or "(in process)"]
    if target.slow_address:
        words += ["--slow-target", target.slow_address]
    if target.fault_command != Target().fault_command:
        words += ["--fault-exec", target.fault_command]
    for profile in options.profiles:
        words += ["--profile", profile]
    for flag, given in (("--claim", options.claims), ("--only", options.only)):
        for value in given:
            words += [flag, value]
    for value in options.skip:
        words += ["--skip", value]
    defaults = Options()
    for flag, name in (
        ("--scope", "scope"),
        ("--substrate", "substrate"),
        ("--seed-count", "seed_count"),
        ("--scale-seed", "scale_seed"),
        ("--port", "port"),
        ("--jobs", "jobs"),
    ):
        if getattr(options, name) != getattr(defaults, name):
            words += [flag, str(getattr(options, name))]
    if options.settle_s != defaults.settle_s:
        words += ["--settle-timeout", f"{options.settle_s:g}s"]
    if options.soak_s != defaults.soak_s:
        words += ["--soak", f"{options.soak_s:g}s"]
    if options.quick:
        words.append("--quick")
    words += ["--seed", str(options.seed)]
    return [shlex.join(words)]
