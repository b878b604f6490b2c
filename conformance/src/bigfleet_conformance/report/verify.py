"""Takes a stored report apart again: schema, digest, ids, verdict, and the three other files.

A digest finds edits; trust comes from repeating the run.
"""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema

from bigfleet_conformance.registry import RETIRED, all_behaviours
from bigfleet_conformance.report.files import NAMES, texts
from bigfleet_conformance.report.model import digest_of, evidence_digest, verdicts
from bigfleet_conformance.results import CheckResult, Result, Status, verdict


def schema() -> dict[str, Any]:
    """The published schema of report.json."""
    raw = resources.files("bigfleet_conformance.report").joinpath("report.schema.json")
    loaded: dict[str, Any] = json.loads(raw.read_text(encoding="utf-8"))
    return loaded


def complaints(folder: Path) -> list[str]:
    """Everything that is wrong with a stored report."""
    missing = [name for name in NAMES if not (folder / name).is_file()]
    if missing:
        return [f"{folder} lacks {', '.join(missing)}"]
    try:
        document = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        jsonschema.validate(document, schema())
    except json.JSONDecodeError as error:
        return [f"report.json is not JSON: {error}"]
    except jsonschema.ValidationError as error:
        where = "/".join(str(part) for part in error.absolute_path)
        return [f"report.json does not fit its schema at {where or 'the top'}: {error.message}"]
    return [
        *_digest(document),
        *_evidence(document),
        *_ids(document),
        *_verdict(document),
        *_other_files(document, folder),
    ]


def _digest(document: dict[str, Any]) -> list[str]:
    if digest_of(document) == document["digest"]:
        return []
    return ["the digest does not fit: report.json was edited after the run"]


def _evidence(document: dict[str, Any]) -> list[str]:
    """Evidence may be left out of a stored report, but what is there fits its digest."""
    wrong = [
        row["id"]
        for row in document["behaviors"]
        if row["evidence"] and evidence_digest(row["evidence"]) != row["evidence_digest"]
    ]
    return [f"the evidence does not fit its digest: {', '.join(wrong)}"] * bool(wrong)


def _ids(document: dict[str, Any]) -> list[str]:
    known = set(all_behaviours()) | RETIRED
    found = [row["id"] for row in document["behaviors"]]
    wrong = sorted(set(found) - known)
    twice = sorted({id for id in found if found.count(id) > 1})
    return [f"unknown ids: {', '.join(wrong)}"] * bool(wrong) + [
        f"ids twice: {', '.join(twice)}"
    ] * bool(twice)


def _verdict(document: dict[str, Any]) -> list[str]:
    rows = document["behaviors"]
    results = {row["id"]: Result(row["id"], Status(row["status"])) for row in rows}
    baseline = [
        CheckResult(check["name"], check["group"], Status(check["status"]))
        for check in document["baseline"]["checks"]
    ]
    derived = verdict(
        [row["id"] for row in rows if row["required"]],
        results,
        baseline,
        partial=document["partial"],
        baseline_due="core" in document["profiles"]
        and not document["environment"]["options"]["only"],
    )
    wrong = []
    if derived != document["verdict"]:
        wrong.append(f"the verdict says {document['verdict']}, the rows give {derived}")
    # Reports of schema version 2 have one verdict only.
    if document["schema_version"] > 2 and document["verdicts"] != verdicts(rows):
        wrong.append("the verdicts on baseline and additions are not those of the rows")
    return wrong


def _other_files(document: dict[str, Any], folder: Path) -> list[str]:
    return [
        f"{name} does not fit report.json"
        for name, text in texts(document).items()
        if name != "report.json" and (folder / name).read_text(encoding="utf-8") != text
    ]
