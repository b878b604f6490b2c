"""Tables and texts of the command line: summary, list, explain."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bigfleet_conformance.mutants import killers
from bigfleet_conformance.registry import Area, Behaviour
from bigfleet_conformance.report.model import Report, first_line

COLOURS = {"CERTIFIED": "green", "INCOMPLETE": "yellow", "FAILED": "red"}
EVIDENCE_LINES = 8


def as_text(value: object, output: str) -> str:
    """JSON or YAML."""
    if output == "json":
        return json.dumps(value, indent=2)
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).rstrip()


def summary(report: Report, console: Console, output: str) -> None:
    """The end of a run."""
    document = report.document
    if output != "table":
        keys = ("provider", "profiles", "verdict", "verdicts", "summary", "limits", "reproduce")
        console.print(as_text({k: document[k] for k in keys}, output), markup=False)
        return
    console.print(first_line(document), markup=False, highlight=False, soft_wrap=True)
    table = Table("area", "passed", "failed", "error", "skipped", "not applicable", "not run")
    for area in Area:
        rows = [row for row in document["behaviors"] if row["area"] == area]
        counts = [
            sum(row["status"] == status for row in rows)
            for status in ("passed", "failed", "error", "skipped", "not_applicable", "not_run")
        ]
        table.add_row(str(area), *(str(count) for count in counts))
    console.print(table)
    baseline = document["baseline"]
    console.print(f"baseline: {baseline['passed']} of {baseline['tests']} checks passed")
    for check in baseline["checks"]:
        if check["status"] in ("failed", "error"):
            console.print(f"[red]{check['name']}[/red]: {escape(check['reason'])}")
    for row in document["behaviors"]:
        if row["status"] in ("failed", "error"):
            _failure(row, document, console)
    for limit in document["limits"]:
        console.print(f"limit: {limit}", markup=False)
    extended = document["verdicts"]["extended"]
    console.print(
        f"additions: {extended['verdict']}, {extended['passed']} of {extended['behaviors']} passed",
        markup=False,
        highlight=False,
    )
    total, passed = document["summary"]["total_behaviors"], document["summary"]["passed"]
    colour = COLOURS[document["verdict"]]
    name = escape(f"{document['provider']['name']} {document['provider']['version']}")
    console.print(
        f"{name}: [bold {colour}]{document['verdict']}[/] ({passed}/{total}) for "
        f"{', '.join(document['profiles']) or 'no profile'} in "
        f"{document['environment']['duration_s']:.0f} s"
    )


def _failure(row: Mapping[str, Any], document: Mapping[str, Any], console: Console) -> None:
    console.print(f"\n[red]{row['status']}[/red] {row['id']} {escape(row['title'])}")
    console.print(f"  {row['reason']}", markup=False, highlight=False)
    for entry in row["evidence"][-EVIDENCE_LINES:]:
        words = (f"{key}={value}" for key, value in entry.items())
        console.print(f"    {' '.join(words)}", markup=False, highlight=False)
    console.print(f"  repeat: {document['reproduce'][0]} --only {row['id']}", markup=False)


def _listed(b: Behaviour) -> dict[str, object]:
    return {
        "id": b.id,
        "area": str(b.area),
        "title": b.title,
        "profiles": [str(profile) for profile in b.profiles],
        "capability": [str(need) for need in b.needs],
    }


def listing(rows: Sequence[Behaviour], console: Console, output: str) -> None:
    """Id, title, profiles, capability."""
    if output != "table":
        plain = [_listed(b) for b in rows]
        console.print(as_text(plain, output), markup=False, soft_wrap=True)
        return
    table = Table("id", "title", "profiles", "needs")
    for b in rows:
        table.add_row(b.id, escape(b.title), " ".join(b.profiles), " ".join(b.needs))
    console.print(table)


def explanation(b: Behaviour, console: Console, output: str) -> None:
    """Why it matters, what is done, what passes, what it finds, how to run it alone."""
    mutants = killers()[b.id]
    if output != "table":
        document = {
            **_listed(b),
            "contract": f"wire.md section {b.section}",
            "why": b.why,
            "steps": b.does,
            "passes": b.passes,
            "finds": [{"id": mutant.id, "wrong": mutant.wrong} for mutant in mutants],
        }
        console.print(as_text(document, output), markup=False, highlight=False, soft_wrap=True)
        return
    lines = [
        f"{b.id}  {b.title}",
        "",
        f"area      {b.area}",
        f"profiles  {', '.join(b.profiles)}",
        f"needs     {', '.join(b.needs) or 'nothing optional'}",
        f"contract  wire.md section {b.section}",
        "",
        f"Why: {b.why}",
        f"Steps: {b.does}",
        f"Passes: {b.passes}",
        "",
        "Finds, for example:",
        *(f"  {mutant.id}  {mutant.wrong}" for mutant in mutants),
        "",
        f"Alone: bigfleet-conformance run --target HOST:PORT --only {b.id}",
    ]
    console.print("\n".join(lines), markup=False, highlight=False)
