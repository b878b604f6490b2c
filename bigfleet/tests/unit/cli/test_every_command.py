"""Manners that all commands have: an example in --help, and --output where something is printed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from bigfleet.cli.ctl.main import app as ctl
from bigfleet.cli.kubectl.main import app as kubectl
from bigfleet.cli.lazy_commands import COMMANDS, PROCESSES
from bigfleet.cli.main import app
from bigfleet_conformance.cli.main import app as conformance

PROGRAMS = {
    "bigfleet": app, "bigfleetctl": ctl, "kubectl bigfleet": kubectl,
    "bigfleet-conformance": conformance,
}  # fmt: skip
PRINT_NO_RESULT = {*((name,) for name in PROCESSES), ("simulate", "scenario")}
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


OURS = [(program, words) for program, words in EVERY if program != "bigfleet-conformance"]


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


def shown_examples(program: str, words: tuple[str, ...], columns: int) -> list[str]:
    """What stands below the examples of a command's help."""
    environment = {"NO_COLOR": "1", "TERMINAL_WIDTH": str(columns), "COLUMNS": str(columns)}
    shown = CliRunner(env=environment).invoke(PROGRAMS[program], [*words, "--help"]).stdout
    lines = [line.rstrip() for line in shown.splitlines()]
    head = next(i for i, line in enumerate(lines) if line in ("Example:", "Examples:"))
    return [line.strip() for line in lines[head + 1 :] if line]


def parse(program: str, line: str) -> None:
    """Read an example as its command would, and run nothing."""
    words = program.split()
    assert shlex.split(line)[: len(words)] == words
    rest = shlex.split(line)[len(words) :]
    command: Any = get_command(PROGRAMS[program])
    context = command.make_context(program, rest)
    while rest := [*context._protected_args, *context.args]:
        name, command, rest = context.command.resolve_command(context, rest)
        assert command is not None, line
        context = command.make_context(name, rest, parent=context)
        if not hasattr(command, "resolve_command"):
            break


@pytest.mark.parametrize(
    ("program", "words"), OURS, ids=[" ".join((p, *words)) for p, words in OURS]
)
def test_every_example_is_one_line_that_can_be_copied(program: str, words: tuple[str, ...]) -> None:
    found = shown_examples(program, words, 60)
    assert found == shown_examples(program, words, 400), "folded"
    for line in found:
        assert line.startswith(f"{program} ")
        assert "|" not in line
        parse(program, line)


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
        if program in ("bigfleetctl", "kubectl bigfleet"):
            # There it is an option of the program, and may stand anywhere.
            assert "--output" in names or words
        elif words and not getattr(command, "commands", {}):
            assert ("--output" in names) is (words not in PRINT_NO_RESULT), words


def test_what_shows_progress_can_be_told_not_to() -> None:
    lists = {("demo", "scenarios"), ("bench", "first-cycle")}
    for words, command in commands("bigfleet"):
        names = {name for param in command.params for name in param.opts}
        if words and "--output" in names:
            assert "-o" in names, words
            assert ("--quiet" in names) is (words not in lists), words


@pytest.mark.parametrize("program", ["bigfleet", "bigfleetctl", "kubectl bigfleet"])
def test_a_switch_is_shown_without_a_value(program: str) -> None:
    environment = {"NO_COLOR": "1", "TERMINAL_WIDTH": "200", "COLUMNS": "200"}
    for words, _ in commands(program):
        shown = CliRunner(env=environment).invoke(PROGRAMS[program], [*words, "--help"]).stdout
        assert "<bool>" not in shown, words


@pytest.mark.parametrize("name", PROCESSES)
def test_a_process_shows_what_its_flags_take(name: str) -> None:
    params = PROCESSES[name].make(name).params
    shown = {param.opts[0]: param.metavar for param in params if not param.is_flag}
    assert shown["--config"] == "FILE"
    assert shown["--log-format"] == "text|json"
    assert None not in shown.values()
    if name == "shard":
        assert (shown["--cycle-interval"], shown["--workers"]) == ("DURATION", "N")
