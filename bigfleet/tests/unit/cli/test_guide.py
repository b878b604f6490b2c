"""Every `bigfleet` command of the guide does what a reader would see: it runs and succeeds."""

from pathlib import Path

import pytest

from commandline import run

ROOT = Path(__file__).parents[4]
GUIDE = ROOT / "docs" / "guides" / "plan-and-bench.md"
COMMANDS = [
    line.split()[1:]
    for line in GUIDE.read_text(encoding="utf-8").splitlines()
    if line.startswith("    bigfleet ")
]


def test_the_guide_has_commands() -> None:
    assert {words[0] for words in COMMANDS} == {"plan", "simulate", "bench"}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_of_the_guide_runs(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = run(*words)
    assert result.exit_code == 0
    assert result.stdout
