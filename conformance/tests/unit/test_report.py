"""A report is one document; the other files follow from it, and edits are found."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from bigfleet_conformance import Options, Report, Status, Target, Verdict, all_behaviours
from bigfleet_conformance.registry import Capability, Profile
from bigfleet_conformance.report.files import badge, junit, texts, write
from bigfleet_conformance.report.model import (
    ReportSubject,
    build,
    digest_of,
    evidence_digest,
    first_line,
    verdicts,
    without_evidence,
)
from bigfleet_conformance.report.verify import complaints, schema
from bigfleet_conformance.results import CheckResult, Claim, Findings, LaneRecord, Result


def report(failing: str = "", scope: str = "full") -> Report:
    findings = Findings()
    for id, behaviour in all_behaviours().items():
        if Profile.CORE not in behaviour.profiles:
            continue
        bad = id == failing
        evidence: tuple[dict[str, object], ...] = ({"time_s": 0.1, "method": "Create"},)
        findings.add(
            Result(
                id,
                Status.FAILED if bad else Status.PASSED,
                "core",
                "expected OK, got <INTERNAL> \x01" if bad else "",
                0.5,
                evidence,
            )
        )
    findings.baseline = [CheckResult("FullLifecycle", "lifecycle", Status.PASSED, "", 0.1)]
    findings.lanes = [LaneRecord("core", "x", "1.0", 0.2, 3.0)]
    return build(
        subject=ReportSubject("x", "1.0", "executable", "x --serve"),
        target=Target(command="x --serve"),
        options=Options(scope=scope),
        profiles=(Profile.CORE,),
        claims=[Claim(Capability.DELETE, "probe", True)],
        findings=findings,
        started=datetime(2026, 1, 1, tzinfo=UTC),
        duration_s=12.0,
        environment={"os": "linux", "python": "3.11", "grpc": "1.80"},
    )


def test_the_schema_knows_every_profile() -> None:
    known = schema()["properties"]["profiles"]["items"]["enum"]
    assert sorted(known) == sorted(profile.value for profile in Profile)


def test_a_report_fits_its_published_schema() -> None:
    jsonschema.validate(report().document, schema())
    jsonschema.Draft202012Validator.check_schema(schema())


def test_a_certificate_counts_what_passed() -> None:
    found = report()
    assert found.verdict is Verdict.CERTIFIED
    assert found.exit_code == 0
    assert found.document["summary"]["passed"] == 88
    assert found.document["summary"]["not_run"] == 43
    assert badge(found.document) == {
        "schemaVersion": 1,
        "label": "bigfleet conformance",
        "message": "CERTIFIED (88/131)",
        "color": "green",
    }


def test_a_failure_is_red_everywhere() -> None:
    found = report("B302")
    assert found.verdict is Verdict.FAILED
    assert found.exit_code == 1
    assert badge(found.document)["color"] == "red"
    root = ET.fromstring(junit(found.document))
    failures = root.findall(".//failure")
    assert [failure.get("message") for failure in failures] == ["expected OK, got <INTERNAL> \\x01"]
    page = texts(found.document)["report.html"]
    assert "expected OK, got &lt;INTERNAL&gt;" in page
    assert "http://" not in page.replace("http-equiv", "")


def test_junit_has_a_suite_for_the_baseline_and_for_each_area_that_ran() -> None:
    root = ET.fromstring(junit(report().document))
    names = [suite.get("name") for suite in root]
    assert names[0] == "baseline"
    assert "fencing" in names
    assert "durability" not in names


def test_the_base_scope_says_so() -> None:
    assert badge(report(scope="base").document)["message"].endswith(" base")


def test_a_stored_report_is_verified(tmp_path: Path) -> None:
    write(report().document, tmp_path)
    assert complaints(tmp_path) == []


def edit(folder: Path, change: "Any") -> None:
    path = folder / "report.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_an_edited_report_is_found(tmp_path: Path) -> None:
    write(report("B302").document, tmp_path)

    def whiten(document: dict[str, Any]) -> None:
        row = next(row for row in document["behaviors"] if row["id"] == "B302")
        row["status"] = "passed"

    edit(tmp_path, whiten)
    found = " ".join(complaints(tmp_path))
    assert "digest does not fit" in found
    assert "the verdict says FAILED, the rows give CERTIFIED" in found


def test_evidence_may_be_left_out_but_not_changed(tmp_path: Path) -> None:
    document = dict(report().document)
    first, *rest = document["behaviors"]
    calls = [{"time_s": 0.1, "method": "Create", "code": "OK"}]
    kept = {**first, "evidence": calls, "evidence_digest": evidence_digest(calls)}
    document["behaviors"] = [kept, *rest]
    document["digest"] = digest_of(document)
    for whole in (document, without_evidence(document)):
        write(whole, tmp_path)
        assert complaints(tmp_path) == []
    write(document, tmp_path)

    def forge(edited: dict[str, Any]) -> None:
        edited["behaviors"][0]["evidence"][0]["code"] = "INTERNAL"

    edit(tmp_path, forge)
    found = complaints(tmp_path)
    assert f"the evidence does not fit its digest: {first['id']}" in found


def test_a_report_with_a_new_digest_still_has_to_agree_with_its_files(tmp_path: Path) -> None:
    write(report().document, tmp_path)

    def rename(document: dict[str, Any]) -> None:
        document["provider"]["name"] = "another"
        document["digest"] = digest_of(document)

    edit(tmp_path, rename)
    assert "report.html does not fit report.json" in complaints(tmp_path)


@pytest.mark.parametrize("name", ["report.json", "badge.json"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    write(report().document, tmp_path)
    (tmp_path / name).unlink()
    assert complaints(tmp_path) == [f"{tmp_path} lacks {name}"]


def test_junk_is_refused(tmp_path: Path) -> None:
    write(report().document, tmp_path)
    (tmp_path / "report.json").write_text("{")
    assert "not JSON" in complaints(tmp_path)[0]
    (tmp_path / "report.json").write_text("{}")
    assert "does not fit its schema" in complaints(tmp_path)[0]


def test_an_unknown_id_is_named(tmp_path: Path) -> None:
    write(report().document, tmp_path)

    def invent(document: dict[str, Any]) -> None:
        document["behaviors"][0]["id"] = "B9998"
        document["digest"] = digest_of(document)

    edit(tmp_path, invent)
    assert "unknown ids: B9998" in complaints(tmp_path)


def with_base(status: Status, *, failing: str = "") -> dict[str, object]:
    """The verdicts of a report in which every canonical row ended like this, or one failed."""
    rows = [
        {
            "id": id,
            "area": str(row.area),
            "profiles": [str(profile) for profile in row.profiles],
            "required": Profile.CORE in row.profiles,
            "status": str(Status.FAILED if id == failing else status),
        }
        for id, row in all_behaviours().items()
    ]
    return verdicts(rows)


@pytest.mark.parametrize("status", [Status.PASSED, Status.SKIPPED, Status.NOT_APPLICABLE])
def test_the_baseline_holds_when_all_93_pass_or_do_not_apply(status: Status) -> None:
    found: Any = with_base(status)
    assert found["baseline"]["verdict"] == "COMPATIBLE"
    assert found["baseline"]["behaviors"] == 93


@pytest.mark.parametrize("status", [Status.NOT_RUN, Status.ERROR])
def test_the_baseline_is_not_decided_by_rows_without_a_result(status: Status) -> None:
    found: Any = with_base(status)
    assert found["baseline"]["verdict"] == "INCOMPLETE"
    assert found["extended"]["verdict"] == "INCOMPLETE"


def test_a_failed_addition_leaves_the_baseline_alone_and_the_other_way_round() -> None:
    added: Any = with_base(Status.PASSED, failing="B2039")
    assert added["baseline"]["verdict"] == "COMPATIBLE"
    assert added["extended"]["verdict"] == "FAILED"
    assert added["extended"]["profiles"]["core"]["failed"] == 1
    base: Any = with_base(Status.PASSED, failing="B302")
    assert base["baseline"]["verdict"] == "FAILED"
    assert base["extended"]["verdict"] == "CERTIFIED"


def test_the_first_line_is_about_the_baseline() -> None:
    assert first_line(report().document).startswith("x 1.0: baseline not decided, 24 of the 93 ")
    failed = report(failing="B302").document
    assert first_line(failed).startswith("x 1.0 is not baseline-compatible: 1 of the 93 ")
