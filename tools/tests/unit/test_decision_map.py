"""The decision map leaves no decision out, and what it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "internals" / "decision-map.md"
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


def decisions() -> list[tuple[str, list[str], list[str]]]:
    """Every decision, with the lines that name its code and its tests."""
    found: list[tuple[str, list[str], list[str]]] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("- "):
            found.append((line.removeprefix("- "), [], []))
        elif line.startswith("  - code: "):
            found[-1][1].append(line)
        elif line.startswith("  - test: "):
            found[-1][2].append(line)
    return found


DECISIONS = decisions()


@pytest.mark.parametrize(
    ("code", "tests"),
    [(code, tests) for _, code, tests in DECISIONS],
    ids=[LINK.sub(r"\1", decision)[:60] for decision, _, _ in DECISIONS],
)
def test_a_decision_leads_to_code_and_to_tests_that_are_there(
    code: list[str], tests: list[str]
) -> None:
    assert code
    assert tests
    for _, path in LINK.findall("\n".join(code)):
        assert (PAGE.parent / path).exists(), path
    for statement, path in LINK.findall("\n".join(tests)):
        text = (PAGE.parent / path).read_text(encoding="utf-8")
        assert f"def test_{statement.replace(' ', '_')}(" in text, f"{path}: {statement}"


def test_every_decision_with_a_page_has_a_row() -> None:
    pages = {path.name for path in (ROOT / "docs" / "adr").glob("0*.md")}
    named = [Path(path).name for decision, _, _ in DECISIONS for _, path in LINK.findall(decision)]
    assert sorted(named) == sorted(pages)


def test_every_line_can_be_read_without_scrolling() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert max(len(line) for line in lines) <= 200
