"""Providers that are not built on our kit: judged on the canonical catalogue, by its rules."""

from dataclasses import replace
from pathlib import Path

import pytest

from bigfleet_conformance import Options, Status, Target, Verdict, run
from bigfleet_conformance.report.files import write
from bigfleet_conformance.report.model import first_line
from bigfleet_conformance.report.verify import complaints
from bigfleet_conformance.results import Baseline
from bigfleet_conformance.runner.process import Executable

QUICK_PACE = Options(settle_s=5.0, soak_s=1.0, scale_seed=300, large_seed=300, port=0)
CANONICAL = ("core", "fault", "durable", "scale")
LOST_HOSTS = ("B2014", "B2018", "B2028", "B2032", "B2037", "B2038")


async def test_flags_with_one_dash_are_found_in_a_help_text(
    foreign_command: str, tmp_path: Path
) -> None:
    asked = await Executable.ask(foreign_command, tmp_path)
    assert (asked.name, asked.version, asked.kit_version) == ("foreign", "2.1.0", "")


async def test_a_provider_brings_a_fault_subject_of_its_own(foreign_command: str) -> None:
    target = Target(command=foreign_command, fault_command=f"{foreign_command} fault")
    options = replace(QUICK_PACE, profiles=("fault",), only=("B702", *LOST_HOSTS))
    report = await run(target, options)
    assert report.status("B702") is Status.PASSED, report.behaviour("B702")["reason"]
    absent = {row["id"] for row in report.with_status(Status.NOT_APPLICABLE)}
    assert absent == set(LOST_HOSTS) - {"B2038"}
    assert any("--fault-exec" in limit for limit in report.document["limits"])


async def test_without_a_fault_subject_of_its_own_the_rows_are_errors(
    foreign_command: str,
) -> None:
    options = replace(QUICK_PACE, profiles=("fault",), only=("B702",))
    report = await run(Target(command=foreign_command), options)
    assert report.status("B702") is Status.ERROR
    assert "--fault-exec" in report.behaviour("B702")["reason"]


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
async def test_another_kit_can_be_baseline_compatible_and_lack_additions(
    foreign_command: str, tmp_path: Path
) -> None:
    target = Target(command=foreign_command, fault_command=f"{foreign_command} fault")
    report = await run(target, replace(QUICK_PACE, profiles=CANONICAL))
    verdicts = report.document["verdicts"]
    bad = report.with_status(Status.FAILED, Status.ERROR)
    assert [row["id"] for row in bad] == ["B2039"]
    assert verdicts["baseline"]["verdict"] == Baseline.COMPATIBLE
    assert verdicts["baseline"]["behaviors"] == 93
    assert verdicts["extended"]["verdict"] == Verdict.FAILED
    assert first_line(report.document).startswith("foreign 2.1.0 is baseline-compatible: ")
    write(report.document, tmp_path)
    assert complaints(tmp_path) == []
