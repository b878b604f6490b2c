"""The list of mutants that no test noticed, with room for an explanation each.

Explanations are written by people and kept from one run to the next: a survivor is recognised by
its file, function, kind and changed line, not by its line number.
"""

import re
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from mutating import Mutant

UNEXPLAINED = "not explained yet"
_ENTRY = re.compile(
    r"^### `(?P<file>[^`]+)`, `(?P<function>[^`]*)`: (?P<kind>.+)\n\n"
    r"    - (?P<before>.*)\n    \+ (?P<after>.*)\n\n(?P<why>(?:(?!^#).*\n?)*)",
    re.MULTILINE,
)
_Key = tuple[str, str, str, str, str]


class Verdict(Enum):
    """What became of a mutant; one that hangs was noticed, too."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"

    def __lt__(self, other: "Verdict") -> bool:
        return self.value < other.value


def kill_rate(results: Sequence[tuple[Mutant, Verdict]]) -> float:
    """The share of mutants that some test noticed."""
    survived = sum(verdict is Verdict.SURVIVED for _, verdict in results)
    return 1 - survived / max(1, len(results))


def write_report(
    path: Path, results: Sequence[tuple[Mutant, Verdict]], known: int, seed: int
) -> None:
    """Write the page again, with the explanations it had."""
    explained = explanations(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(page(results, known, seed, explained), encoding="utf-8")


def explained_survivors(path: Path) -> frozenset[_Key]:
    """Those a page has an explanation for: trying them again would tell nothing new."""
    if not path.exists():
        return frozenset()
    known = explanations(path.read_text(encoding="utf-8"))
    return frozenset(key for key, why in known.items() if why != UNEXPLAINED)


def explanations(text: str) -> dict[_Key, str]:
    """What is said of each survivor in a page."""
    found: dict[_Key, str] = {}
    for entry in _ENTRY.finditer(text):
        file, function, kind, before, after = (
            entry[name] for name in ("file", "function", "kind", "before", "after")
        )
        found[file, function, kind, before, after] = entry["why"].strip()
    return found


def page(
    results: Sequence[tuple[Mutant, Verdict]], known: int, seed: int, explained: dict[_Key, str]
) -> str:
    """The whole page."""
    counts = Counter(verdict for _, verdict in results)
    survivors = sorted(
        (mutant for mutant, verdict in results if verdict is Verdict.SURVIVED),
        key=lambda m: (m.file, m.line, m.kind, m.after),
    )
    lines = [
        "# Mutants that survive",
        "",
        "`make mutants` changes one place of the decision engine at a time and runs its tests.",
        "That command writes this page; only the explanations are written by hand, and kept.",
        "",
        f"Sample {len(results)} of {known} possible mutants, seed {seed}: "
        f"{counts[Verdict.KILLED]} killed, {counts[Verdict.TIMED_OUT]} timed out, "
        f"{counts[Verdict.SURVIVED]} survived. {kill_rate(results):.1%} die.",
        "",
        "| file | tried | survived |",
        "| --- | --- | --- |",
        *_table(results),
        "",
        "## Survivors",
        "",
    ]
    for mutant in survivors:
        lines += [
            f"### `{mutant.file}`, `{mutant.function}`: {mutant.kind}",
            "",
            f"    - {mutant.before}",
            f"    + {mutant.after}",
            "",
            explained.get(mutant.key) or UNEXPLAINED,
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def _table(results: Sequence[tuple[Mutant, Verdict]]) -> list[str]:
    tried = Counter(mutant.file for mutant, _ in results)
    left = Counter(mutant.file for mutant, verdict in results if verdict is Verdict.SURVIVED)
    return [f"| {file} | {tried[file]} | {left[file]} |" for file in sorted(tried)]
