"""Keeps a certification in the repository: `python tools/store_report.py DIR...`.

Writes the four files of a report to conformance/reports/<suite>/<provider>/<version>/ (a run over
HTTP to the folder `http` below it), and the README with the way to repeat it. Rows that passed keep
the digest of their evidence and not the evidence, which would be nine tenths of the repository.
Only a whole certificate is kept: CERTIFIED, not partial, of a version and not of a branch.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bigfleet_conformance.report.files import write
from bigfleet_conformance.report.model import without_evidence
from bigfleet_conformance.report.verify import complaints

ROOT = Path(__file__).parent.parent
PREFIX = "bigfleet-provider-"
VERSION = re.compile(r"\d[\w.+-]*")
Document = Mapping[str, object]


class CannotStoreError(ValueError):
    """The report is not a certificate; the text says why."""


def part(document: Document, name: str) -> Document:
    """A part of a report that is a map."""
    found = document[name]
    assert isinstance(found, Mapping)
    return found


def place_of(document: Document) -> Path:
    """Where a report belongs, below the folder of all reports."""
    provider = part(document, "provider")
    name = str(provider["name"]).removeprefix(PREFIX)
    folder = Path(str(part(document, "suite")["version"])) / name / str(provider["version"])
    return folder / "http" if document["substrate"] == "http" else folder


def readme(document: Document) -> str:
    """What a person finds beside the files."""
    provider, environment = part(document, "provider"), part(document, "environment")
    summary = part(document, "summary")
    limits = document["limits"]
    commands = document["reproduce"]
    assert isinstance(limits, Sequence)
    assert isinstance(commands, Sequence)
    facts = {
        "verdict": f"{document['verdict']}, {summary['passed']} of {summary['total_behaviors']}",
        "substrate": document["substrate"],
        "took": f"{environment['duration_s']} s",
        "made": environment["started"],
        "system": f"{environment['os']}, {environment['cpus']} cores",
        "Python, grpcio": f"{environment['python']}, {environment['grpc']}",
    }
    lines = [f"# {provider['name']} {provider['version']}", "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in facts.items()]
    lines += ["", *(f"Limit: {limit}." for limit in limits)] if limits else []
    lines += ["", "## Reproduce", "", "From the root of the repository, after `make setup`:", ""]
    lines += [f"    .venv/bin/{command}" for command in commands]
    lines += ["", "Whether the files are whole: `bigfleet-conformance verify` and this folder.", ""]
    return "\n".join(lines)


def store(source: Path, root: Path = ROOT) -> Path:
    """Store one report and return its folder."""
    wrong = complaints(source)
    if wrong:
        raise CannotStoreError(f"{source}: {wrong[0]}")
    document: Document = json.loads((source / "report.json").read_text("utf-8"))
    version = str(part(document, "provider")["version"])
    if document["verdict"] != "CERTIFIED" or document["partial"]:
        raise CannotStoreError(f"{source} is not a certificate: {document['verdict']}")
    if not VERSION.fullmatch(version):
        raise CannotStoreError(f"{source}: {version!r} is not a version; give --provider-version")
    if Path(str(part(document, "provider")["command"])).is_absolute():
        raise CannotStoreError(f"{source} names a path of one machine; run it by its name")
    target = root / "conformance" / "reports" / place_of(document)
    target.mkdir(parents=True, exist_ok=True)
    write(without_evidence(document), target)
    (target / "README.md").write_text(readme(document), "utf-8")
    return target


def main(argv: Sequence[str]) -> int:
    """Store each, and say where."""
    if not argv:
        print("Give the folders of reports: python tools/store_report.py DIR...", file=sys.stderr)
        return 2
    try:
        for source in argv:
            print(f"Stored {store(Path(source)).relative_to(ROOT)}")
    except CannotStoreError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
