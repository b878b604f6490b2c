"""The decision map leaves no decision out, and what it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "internals" / "decision-map.md"
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| decision", "| ---"))
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: LINK.sub(r"\1", row[0])[:60])
def test_a_decision_leads_to_code_and_to_tests_that_are_there(row: list[str]) -> None:
    _, code, tests = row
    assert LINK.findall(code)
    assert LINK.findall(tests)
    for _, path in LINK.findall(code):
        assert (PAGE.parent / path).exists(), path
    for statement, path in LINK.findall(tests):
        text = (PAGE.parent / path).read_text(encoding="utf-8")
        assert f"def test_{statement.replace(' ', '_')}(" in text, f"{path}: {statement}"


def test_every_decision_with_a_page_has_a_row() -> None:
    pages = {path.name for path in (ROOT / "docs" / "adr").glob("0*.md")}
    named = [Path(path).name for row in ROWS for _, path in LINK.findall(row[0])]
    assert sorted(named) == sorted(pages)
