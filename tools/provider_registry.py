"""Writes docs/providers/README.md, the registry of providers, and the table of the README.

    python tools/provider_registry.py            writes both, and the parts of `provider_pages`
    python tools/provider_registry.py --check    says whether they are fresh; `make docs` does

What a provider has is read from its declaration and its imports; when it was certified, and with
which verdicts, from the newest reports in conformance/reports. Without a stored report a provider
is listed as not certified, whatever its pages say.
"""

import importlib
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bigfleet_conformance.report.model import verdicts

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "providers" / "README.md"
README = ROOT / "README.md"
REPORTS = ROOT / "conformance" / "reports"
BEGIN, END = (
    "<!-- providers: written by tools/provider_registry.py -->",
    "<!-- end of providers -->",
)
CHANNELS = {
    "SshSubstrate": "ssh",
    "AgentSubstrate": "agent",
    "CommandChannel": "command",
    "GuestChannel": "guest",
}
NOT_FOR_USERS = frozenset({"_template"})
HEAD = """\
# Providers

<!-- Written by tools/provider_registry.py from the declarations and the stored reports. -->

One provider serves one cloud, region, hypervisor or rack. All of them are built on the kit and
answer the same contract; what each makes of its substrate is on its pages. How to write another
one: [writing a capacity provider](../provider-author-guide.md) and [what a provider must
bring](../what-a-provider-must-bring.md).

"""
TAIL = """
**Baseline** is the canonical catalogue of 93 behaviours: a provider that passes them is
baseline-compatible. **Additions** are what this project asks for beyond it, by profile.
*Memory* ran on the provider's fake backend, *HTTP* with the SDK of its cloud against an
imitation of the cloud. No report was made on a real cloud. A provider without a stored report
says so here, also where its tests pass. Reports are stored by `tools/store_report.py` and
checked by `bigfleet-conformance verify`.
"""


@dataclass(frozen=True, slots=True)
class Report:
    """One stored certification."""

    folder: Path
    date: str
    baseline: str
    additions: str


@dataclass(frozen=True, slots=True)
class Provider:
    """One row of the registry."""

    name: str
    page: Path
    capacity_types: tuple[str, ...]
    channel: str
    memory: Report | None
    http: Report | None


def providers(root: Path = ROOT) -> Iterator[Provider]:
    """Every provider that a user can run, by name."""
    for project in sorted((root / "providers").glob("*/pyproject.toml")):
        folder = project.parent
        if folder.name in NOT_FOR_USERS:
            continue
        spec = declaration(project)
        pages = root / "docs" / "providers"
        index = pages / folder.name / "index.md"
        yield Provider(
            folder.name,
            index if index.exists() else pages / f"{folder.name}.md",
            tuple(sorted(kind.key for kind in spec.capacity_types)),
            _channel(folder),
            newest(root / "conformance" / "reports", folder.name, ""),
            newest(root / "conformance" / "reports", folder.name, "http"),
        )


def newest(reports: Path, name: str, below: str) -> Report | None:
    """The newest stored report of a provider on one substrate."""
    found = [
        folder
        for folder in reports.glob(f"*/{name}/*")
        if (folder / below / "report.json").is_file()
    ]
    if not found:
        return None
    folder = max(found, key=lambda path: _numbers(path.parts[-3]) + _numbers(path.name)) / below
    document: Mapping[str, Any] = json.loads((folder / "report.json").read_text("utf-8"))
    both = verdicts(document["behaviors"])
    return Report(
        folder,
        str(document["environment"]["started"])[:10],
        _words(both["baseline"]),
        _words(both["extended"]),
    )


def page(rows: list[Provider], place: Path) -> str:
    """The registry as a page that lies in a folder."""
    return HEAD + "\n".join(table(rows, place)) + "\n" + TAIL


def table(rows: list[Provider], place: Path) -> list[str]:
    """The table, with links from a folder."""
    lines = [
        "| provider | capacity types | way into a host | certified in memory | over HTTP "
        "| baseline | additions |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        reports = [report for report in (row.memory, row.http) if report is not None]
        cells = [
            f"[{row.name}]({link(place, row.page)})",
            ", ".join(row.capacity_types),
            row.channel,
            _cell(row.memory, place),
            _cell(row.http, place),
            _joined([report.baseline for report in reports]),
            _joined([report.additions for report in reports]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def with_table(readme: str, rows: list[Provider]) -> str:
    """A README with its table brought up to date."""
    begin, end = readme.index(BEGIN) + len(BEGIN), readme.index(END)
    return f"{readme[:begin]}\n\n{chr(10).join(table(rows, ROOT))}\n\n{readme[end:]}"


def main(words: list[str]) -> int:
    """Write, or check."""
    rows = list(providers())
    wanted = {
        PAGE: page(rows, PAGE.parent),
        README: with_table(README.read_text("utf-8"), rows),
    }
    old = [p for p, text in wanted.items() if not p.is_file() or p.read_text("utf-8") != text]
    if words == ["--check"]:
        for path in old:
            print(f"{path.relative_to(ROOT)} is old: run python tools/provider_registry.py")
        return 1 if old else 0
    for path in old:
        path.write_text(wanted[path], "utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    import provider_pages  # reads declarations with the functions above

    return provider_pages.main([])


def declaration(project: Path) -> Any:
    """The declaration of a provider; its module is that of its executable."""
    scripts = tomllib.loads(project.read_text("utf-8"))["project"]["scripts"]
    package = next(iter(scripts.values())).split(".")[0]
    return importlib.import_module(f"{package}.spec").SPEC


def _channel(folder: Path) -> str:
    """The channel whose class a provider names; none where hosts are imagined."""
    text = "".join(path.read_text("utf-8") for path in sorted(folder.glob("src/**/*.py")))
    found = [word for name, word in CHANNELS.items() if re.search(rf"\b{name}\b", text)]
    return ", ".join(found) or "none"


def _words(part: Mapping[str, Any]) -> str:
    return f"{part['verdict']}, {part['passed']} of {part['behaviors']}"


def _joined(values: list[str]) -> str:
    """One value where all reports say the same."""
    return "; ".join(dict.fromkeys(values)) or "no report"


def _cell(report: Report | None, place: Path) -> str:
    return f"[{report.date}]({link(place, report.folder / 'README.md')})" if report else "no report"


def link(place: Path, target: Path) -> str:
    """A link from a folder to a file."""
    up = 0
    while not target.is_relative_to(place):
        place, up = place.parent, up + 1
    return "../" * up + target.relative_to(place).as_posix()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
