"""Every `bigfleet` command of these guides does what a reader would see: it runs and succeeds."""

import re
from pathlib import Path

import pytest

from commandline import run

ROOT = Path(__file__).parents[4]
GUIDES = ROOT / "docs" / "guides"
PLAN_AND_BENCH = GUIDES / "plan-and-bench.md"
CONCEPTS = GUIDES / "concepts.md"
TIME = re.compile(r"[\d,.]+ ms")


def commands(guide: Path) -> list[list[str]]:
    lines = guide.read_text(encoding="utf-8").splitlines()
    return [line.split()[1:] for line in lines if line.startswith("    bigfleet ")]


def test_the_guides_have_commands() -> None:
    assert {words[0] for words in commands(PLAN_AND_BENCH)} == {"plan", "simulate", "bench"}
    assert {words[0] for words in commands(CONCEPTS)} == {"plan"}


@pytest.mark.parametrize("words", commands(PLAN_AND_BENCH) + commands(CONCEPTS)[1:], ids=" ".join)
def test_a_command_of_the_guide_runs(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = run(*words)
    assert result.exit_code == 0
    assert result.stdout


def test_the_concepts_show_what_the_first_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = run(*commands(CONCEPTS)[0], columns=100)
    assert result.exit_code == 0
    shown = TIME.sub("T ms", CONCEPTS.read_text(encoding="utf-8"))
    printed = [line.rstrip() for line in TIME.sub("T ms", result.stdout).splitlines()]
    assert "\n".join(f"    {line}".rstrip() for line in printed) in shown
