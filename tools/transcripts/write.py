"""Writes docs/internals/transcripts from the scenarios, or says which pages differ.

`make transcripts` writes; `--check` only compares, and ends with 1 when a page differs.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from transcripts import lifetime, priority, supply
from transcripts.fleet import Scenario
from transcripts.render import page

FOLDER: Final = Path(__file__).parents[2] / "docs" / "internals" / "transcripts"
GROUPS: Final = (
    ("Which machine serves a need", supply.SCENARIOS),
    ("Needs that compete", priority.SCENARIOS),
    ("Machines over time", lifetime.SCENARIOS),
)
HEAD: Final = """\
# Engine transcripts

<!-- Written by tools/transcripts; `make transcripts` writes this folder again. -->

Each page shows one idea of the [decision engine](../decision-engine.md): a small fleet and its
demand as tables, then what the engine decides and why, cycle by cycle. The engine itself writes
the decisions, verdicts and reasons, and a test compares every page with what it decides today.

How to read them:

- *made for* is the stamp of a machine: the need it was taken for.
- *counted machines* are the machines that the decision counts for a need. They may still be on
  their way.
- A cycle decides and starts operations. They end when a line says so; until then the machines are
  in a transitional state, or in the grace of their drain.
- The words are explained in the [glossary](../glossary.md). A setting has its default unless the
  page shows it. Only the hold before a reclaim is 0 where a page does not show it, so that each
  page stays short.
"""


def pages() -> Iterator[tuple[Path, str]]:
    """Every page of the folder, its index first."""
    yield FOLDER / "README.md", "\n".join(_index())
    for _, scenarios in GROUPS:
        for scenario in scenarios:
            yield _path(scenario), page(scenario)


def _index() -> Iterator[str]:
    yield HEAD
    for title, scenarios in GROUPS:
        yield f"## {title}\n"
        for scenario in scenarios:
            yield f"- [{scenario.title}]({_path(scenario).name})"
        yield ""


def _path(scenario: Scenario) -> Path:
    return FOLDER / f"{scenario.name}.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    check = parser.parse_args(arguments).check
    wanted = dict(pages())
    FOLDER.mkdir(parents=True, exist_ok=True)
    differing = [path for path, text in wanted.items() if _text(path) != text]
    stray = sorted(set(FOLDER.glob("*.md")) - set(wanted))
    if check:
        for path in (*differing, *stray):
            print(f"{path.name}: differs from what the engine decides: run make transcripts")
        return 1 if differing or stray else 0
    for path in differing:
        path.write_text(wanted[path], encoding="utf-8")
    for path in stray:
        path.unlink()
    print(f"{len(differing)} of {len(wanted)} pages written, {len(stray)} removed")
    return 0


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


if __name__ == "__main__":
    raise SystemExit(main())
