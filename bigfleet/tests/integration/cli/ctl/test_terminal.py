"""Manners of the program: narrow terminals, colours, help, completion, where options stand."""

import os
import re
import subprocess
import sys

import pytest

from bigfleet.cli.ctl.main import app
from ctlfleet import ctl
from ctlworld import World

READING = [
    ["status"],
    ["inspect-needs", "--shard", "s-1"],
    ["list-shards"],
    ["list-clusters"],
    ["list-domain-assignments"],
    ["list-quotas"],
    ["list-providers"],
    ["list-shard-reports"],
    ["list-instructions"],
    ["moves", "--all"],
    ["list-machines", "--shard", "s-1"],
    ["watch", "--shard", "s-1", "--count", "3"],
]
COLOUR = re.compile(r"\x1b\[[0-9;]*\b(?:3[0-7]|9[0-7]|4[0-7])m")


@pytest.mark.parametrize("words", READING, ids=lambda words: str(words[0]))
def test_forty_columns_are_enough(fleet: World, words: list[str]) -> None:
    text = ctl(*fleet.at, *words, columns=40).stdout
    assert text
    assert max(len(line) for line in text.splitlines()) <= 40


def test_global_options_may_stand_anywhere(fleet: World) -> None:
    first = ctl("-o", "json", *fleet.at, "list-clusters", "--shard", "s-1")
    last = ctl(
        "list-clusters", "--shard", "s-1", f"--coordinator={fleet.at[1]}", "--output", "json"
    )
    assert first.exit_code == last.exit_code == 0
    assert first.stdout == last.stdout


def test_every_command_has_help_with_examples() -> None:
    names = [command.name for command in app.registered_commands]
    assert len(names) == 24
    for words in [*([str(name)] for name in names), ["snapshot", "save"], ["snapshot", "restore"]]:
        result = ctl(*words, "--help")
        assert result.exit_code == 0
        assert f"\n  bigfleetctl {' '.join(words)}" in result.stdout.partition("Example")[2]


def test_without_a_command_there_is_help() -> None:
    result = ctl()
    assert result.exit_code == 2
    assert "list-domain-assignments" in result.output


def test_the_version_is_told() -> None:
    assert re.fullmatch(r"bigfleetctl \d+\.\d+\.\d+\n", ctl("--version").stdout)


def program(*words: str, **variables: str) -> str:
    """What the real program printed."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    done = subprocess.run(
        [sys.executable, "-m", "bigfleet.cli.ctl.main", *words],
        env={**kept, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


def test_colours_are_off_with_no_color(fleet: World) -> None:
    words = [*fleet.at, "status"]
    coloured = program(*words, FORCE_COLOR="1", TERM="xterm-256color")
    assert COLOUR.search(coloured)
    plain = program(*words, FORCE_COLOR="1", TERM="xterm-256color", NO_COLOR="1")
    assert "What is wrong" in plain
    assert not COLOUR.search(plain)


def test_what_goes_into_a_pipe_is_neither_coloured_nor_folded(fleet: World) -> None:
    fleet.coordinator.shards[0].address = "a" * 100
    text = program(*fleet.at, "list-shards")
    assert "\x1b" not in text
    assert "a" * 100 in text


def test_the_shell_completes_commands_and_choices() -> None:
    asked = {"_BIGFLEETCTL_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    commands = program(**asked, COMP_WORDS="bigfleetctl list-")
    assert "list-shards" in commands.split()
    assert "status" not in commands.split()
    asked["COMP_CWORD"] = "3"
    states = program(**asked, COMP_WORDS="bigfleetctl list-machines --state con")
    assert states.split() == ["configuring", "configured"]


def test_help_brings_no_grpc() -> None:
    code = (
        "import sys, bigfleet.cli.ctl.main as m; "
        "print(sorted({'grpc', 'numpy', 'google.protobuf', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
