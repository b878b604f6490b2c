"""`bigfleet simulate loop` and `simulate demo`: they run, end by themselves, and tell the truth."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from bigfleet_lab.commands.demo_view import HONEST, View
from bigfleet_lab.simulate.demo_fleet import DemoFleet
from commandline import run

FLEET = """
{"machines": [{"count": 9, "allocatable": {"cpu": "4"}, "state": "Speculative", "price": 0.1}],
 "needs": [{"cluster": "c", "aggregate": {"cpu": "20"}, "min_unit": {"cpu": "1"}}]}
"""


@pytest.fixture
def fleet(tmp_path: Path) -> str:
    path = tmp_path / "fleet.json"
    path.write_text(FLEET)
    return str(path)


def test_the_loop_reports_when_it_settled_and_that_nothing_was_in_vain(fleet: str) -> None:
    words = ("simulate", "loop", "--scenario", fleet, "--cycles", "40", "--create-delay", "0..9")
    document = json.loads(run(*words, "--output", "json").stdout)
    assert len(document["cycles"]) == 40
    assert document["actions"] == {"Provision": 5, "Bootstrap": 5}
    assert (document["over_acquisition"], document["reclaims_at_unchanged_demand"]) == (0, 0)
    assert 2 <= document["settled_at"] <= 15
    text = run(*words).stdout
    assert f"Settled: nothing was decided from cycle {document['settled_at']} on" in text
    assert "Reclaims at unchanged demand: 0" in text


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--create-delay", "9..1"], "delay '9..1' ends before it begins"),
        (["--drain-delay", "soon"], "delay 'soon' is not a range of cycles"),
        (["--cycles", "0"], "--cycles"),
        (["--seed", "-1"], "--seed"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    fleet: str, words: list[str], complaint: str
) -> None:
    result = run("simulate", "loop", "--scenario", fleet, *words)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert complaint in result.stderr


def test_the_demo_ends_by_itself_and_says_what_is_real() -> None:
    result = run("simulate", "demo", "--plain", "--cycles", "3", "--speed", "0")
    assert result.exit_code == 0
    assert HONEST in result.stdout
    assert "Bootstrap" in result.stdout
    assert "3 cycles, 00:00:30 of virtual time" in result.stdout


def test_the_demo_is_the_same_for_the_same_seed() -> None:
    def told(seed: str) -> str:
        return run("simulate", "demo", "--plain", "--cycles", "25", "--seed", seed).stdout

    assert told("5") == told("5")
    assert told("5") != told("6")


@pytest.mark.parametrize(("width", "height"), [(40, 50), (80, 40), (140, 45)])
def test_the_screen_fits_any_width_and_needs_no_colour(width: int, height: int) -> None:
    demo = DemoFleet(seed=1)
    view = View(demo)
    for _ in range(3):
        view.take(demo.step())
    screen = io.StringIO()
    console = Console(file=screen, width=width, height=height, color_system=None)
    console.print(view.render(width, height))
    text = screen.getvalue()
    assert all(len(line) <= width for line in text.splitlines())
    assert "BigFleet demo" in text
    assert "$" in text
    cells = [word for line in text.splitlines() for word in line.split() if len(word) == 1]
    assert sum(cell in "ABCabc.+o><-!" for cell in cells) >= 120


def test_a_day_of_the_demo_shows_everything_the_engine_can_do() -> None:
    demo = DemoFleet(seed=1)
    kinds: set[str] = set()
    for _ in range(110):
        kinds |= set(demo.step().counts())
    assert kinds >= {"Bootstrap", "Provision", "Reclaim", "Preempt", "Delete"}
    assert sum(demo.world.inventory.counts_by_state().values()) == 120


def test_the_terminal_demo_can_be_read_by_programs() -> None:
    result = run("simulate", "demo", "--cycles", "5", "--output", "json")
    assert result.exit_code == 0
    assert [each["cycle"] for each in json.loads(result.stdout)["cycles"]] == [1, 2, 3, 4, 5]
    endless = run("simulate", "demo", "--output", "json")
    assert endless.exit_code == 2
    assert "--cycles" in endless.stderr
