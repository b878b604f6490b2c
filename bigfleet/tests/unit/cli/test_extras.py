"""What commands say where a package or the laboratory is not installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from bigfleet.cli.doctor import here
from bigfleet.cli.doctor.findings import FindingKind
from bigfleet.cli.lazy_commands import COMMANDS, LABORATORY, PROCESSES
from commandline import run

LABORATORY_COMMANDS = [
    name for name, command in COMMANDS.items() if command.module.startswith(LABORATORY)
]
SCENARIO = str(Path(__file__).parents[4] / "examples" / "first-fleet.json")


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """As an installation that lacks these packages."""
    monkeypatch.setattr(
        "bigfleet.cli.extras.find_spec", lambda name: None if name in packages else find_spec(name)
    )


@pytest.mark.parametrize("name", LABORATORY_COMMANDS)
def test_a_command_of_the_laboratory_says_how_to_install_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "bigfleet_lab")
    ended = run(name, "--help")
    assert ended.exit_code == 1
    assert ended.stderr == (
        f"bigfleet: bigfleet {name} is part of the laboratory, which is not installed: "
        "pip install bigfleet-lab\n"
    )


def test_without_the_laboratory_its_commands_are_still_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without(monkeypatch, "bigfleet_lab")
    ended = run("--help")
    assert ended.exit_code == 0
    assert (
        {name for name in LABORATORY_COMMANDS if name in ended.stdout}
        == {*LABORATORY_COMMANDS}
        == {"bench", "demo", "simulate"}
    )


@pytest.mark.parametrize(
    ("name", "package"),
    [(name, package) for name, command in PROCESSES.items() for package in command.packages],
)
def test_a_process_names_the_extra_it_needs(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, package)
    ended = run(name, "--help")
    assert ended.exit_code == 1
    assert ended.stderr == (
        f"bigfleet: bigfleet {name} needs the package {package}, which is not installed: "
        f"pip install 'bigfleet[{name}]'\n"
    )


def test_a_plan_needs_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "numba")
    ended = run("plan", "--scenario", SCENARIO)
    assert ended.exit_code == 1
    assert "pip install 'bigfleet[shard]'" in ended.stderr


def test_the_doctor_notes_an_engine_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "numba")
    assert here.engine().verdict is FindingKind.NOTE
