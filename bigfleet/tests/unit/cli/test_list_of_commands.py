"""`bigfleet` lists its commands at once, in their own words, without importing them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from bigfleet.cli.lazy_commands import COMMANDS, PROCESSES, TOOLS
from bigfleet.cli.main import app

SLOW_TO_IMPORT = {"grpc", "numba", "numpy", "opentelemetry", "prometheus_client", "rich", "yaml"}
"""What commands need and their list does not."""
MODULES_OF_THE_LIST = 200
"""It takes 151 with Python 3.11. A count holds where a time would depend on the machine."""
LIST_COMMANDS = """
import sys
from bigfleet.cli.main import main
sys.argv = ["bigfleet", "--help"]
try:
    main()
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""


def test_the_list_of_commands_imports_little() -> None:
    ours = {key: value for key, value in os.environ.items() if "PYTHON" not in key}
    done = subprocess.run(
        [sys.executable, "-c", LIST_COMMANDS], env=ours, check=True, capture_output=True, text=True
    )
    imported = done.stderr.split()
    assert "pod-controller" in done.stdout
    assert {name.partition(".")[0] for name in imported} & SLOW_TO_IMPORT == set()
    assert len(imported) < MODULES_OF_THE_LIST


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_describes_a_command_in_the_first_words_of_its_help(name: str) -> None:
    assert " ".join((COMMANDS[name].make(name).help or "").split()).startswith(COMMANDS[name].words)


def test_tools_and_processes_are_all_commands() -> None:
    assert not TOOLS.keys() & PROCESSES.keys()
    shown = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(app, ["--help"]).stdout
    listed = [line.split()[0] for line in shown.splitlines() if line[:2] == "  " and line[2] > "-"]
    assert [name for name in listed if name in COMMANDS] == [*TOOLS, *PROCESSES]


@pytest.mark.parametrize(
    "words", [[], ["bench"], ["simulate"]], ids=["bigfleet", "bench", "simulate"]
)
def test_a_group_without_a_command_prints_its_help_and_no_error_line(words: list[str]) -> None:
    shown = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(app, words)
    assert shown.exit_code == 2
    assert "Usage: bigfleet" in shown.stdout
    assert "  bigfleet bench" in shown.stdout or "  bigfleet simulate" in shown.stdout
    assert shown.stderr == ""
