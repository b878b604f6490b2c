"""Manners that all commands have: an example in --help, and --output where something is printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from bigfleet.cli.ctl.main import app as ctl
from bigfleet.cli.late import COMMANDS
from bigfleet.cli.main import app
from bigfleet_conformance.cli.main import app as conformance

PROGRAMS = {"bigfleet": app, "bigfleetctl": ctl, "bigfleet-conformance": conformance}
PRINT_NO_RESULT = {*((name,) for name in COMMANDS), ("simulate", "scenario")}
"""Processes that run until they are told to stop, and what writes a file of its own form."""


def commands(program: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of a program, groups included, by the words that lead to it."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), get_command(PROGRAMS[program]))]
    while waiting:
        words, command = waiting.pop()
        yield words, command
        inner = getattr(command, "commands", {})
        waiting += [((*words, name), each) for name, each in inner.items()]
        if not words and program == "bigfleet":
            waiting += [((name,), late.make(name)) for name, late in COMMANDS.items()]


EVERY = [(program, words) for program in PROGRAMS for words, _ in commands(program)]


def test_there_are_many() -> None:
    assert len(EVERY) > 45


@pytest.mark.parametrize(
    ("program", "words"), EVERY, ids=[" ".join((p, *words)) for p, words in EVERY]
)
def test_help_shows_an_example_of_this_command(program: str, words: tuple[str, ...]) -> None:
    environment = {"NO_COLOR": "1", "TERMINAL_WIDTH": "400", "COLUMNS": "400"}
    shown = CliRunner(env=environment).invoke(PROGRAMS[program], [*words, "--help"])
    assert shown.exit_code == 0
    _, found, examples = " ".join(shown.stdout.split()).partition("Example")
    assert found, "no example"
    assert " ".join((program, *words)) in examples


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_spells_every_flag_out_on_a_terminal_of_80_columns(program: str) -> None:
    environment = {"NO_COLOR": "1", "TERMINAL_WIDTH": "80", "COLUMNS": "80"}
    for words, command in commands(program):
        shown = CliRunner(env=environment).invoke(PROGRAMS[program], [*words, "--help"]).stdout
        flags = {name for param in command.params for name in param.opts if name[:2] == "--"}
        assert {flag for flag in flags if flag not in shown} == set(), words
        assert "\\[" not in shown


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_prints_a_result_prints_it_for_programs_too(program: str) -> None:
    for words, command in commands(program):
        names = {name for param in command.params for name in param.opts}
        if program == "bigfleetctl":
            # There it is an option of the program, and may stand anywhere.
            assert "--output" in names or words
        elif words and not getattr(command, "commands", {}):
            assert ("--output" in names) is (words not in PRINT_NO_RESULT), words
