"""`bigfleet plan`: three forms of one plan, the drawer, and one line for each bad input."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from bigfleet import engine_warm_up
from bigfleet.cli import warm_up
from bigfleet.decision import Engine
from commandline import run

GPUS = """
{"name": "gpus",
 "machines": [
  {"count": 4, "rack_size": 4, "labels": {"pool": "t"}, "allocatable": {"cpu": "32", "gpu": "4"},
   "state": "Configured", "cluster": "lab", "assigned_need": 0},
  {"start": 4, "count": 8, "labels": {"pool": "g"}, "zones": ["z-a"], "price": 0.77,
   "capacity_type": "OnDemand", "allocatable": {"cpu": "16"}, "state": "Speculative"}],
 "needs": [
  {"cluster": "lab", "aggregate": {"cpu": "64", "gpu": "16"},
   "min_unit": {"cpu": "16", "gpu": "4"}},
  {"cluster": "sci", "requirements": [{"key": "topology.bigfleet/rack", "op": "Same"}],
   "aggregate": {"gpu": "24"}, "min_unit": {"gpu": "4"}, "priority": 1000, "group": "g"},
  {"cluster": "shop", "requirements": [{"key": "topology.kubernetes.io/zone", "op": "In",
   "values": ["z-c"]}], "aggregate": {"cpu": "8"}, "min_unit": {"cpu": "2"}},
  {"cluster": "see", "aggregate": {"gpu": "8"}, "min_unit": {"gpu": "4"}, "priority": 1000000},
  {"cluster": "web", "aggregate": {"cpu": "30"}, "min_unit": {"cpu": "2"}}]}
"""


@pytest.fixture
def gpus(tmp_path: Path) -> str:
    path = tmp_path / "gpus.json"
    path.write_text(GPUS)
    return str(path)


def test_the_json_has_the_shape_of_the_specification(gpus: str) -> None:
    result = run("plan", "--scenario", gpus, "--output", "json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert list(document) == ["actions", "needs"]
    for action in document["actions"]:
        assert list(action) == ["kind", "machine", "cluster", "need", "reason", "grace_seconds"]
    assert [need["index"] for need in document["needs"]] == [0, 1, 2, 3, 4]
    assert document["needs"][2] == {
        "index": 2,
        "cluster": "shop",
        "satisfied": False,
        "deficit": {"cpu": "8"},
        "reason": "NO_MATCHING_SUPPLY",
        "claimed": 0,
        "domain": "",
    }
    kinds = {(a["kind"], a["cluster"], a["need"]) for a in document["actions"]}
    assert kinds == {("Preempt", "lab", 3), ("Provision", "web", 4)}
    assert document["needs"][4]["satisfied"] is True
    assert document["needs"][4]["reason"] == ""


def test_yaml_says_the_same_as_json(gpus: str) -> None:
    as_json = json.loads(run("plan", "--scenario", gpus, "--output", "json").stdout)
    assert yaml.safe_load(run("plan", "--scenario", gpus, "--output", "yaml").stdout) == as_json


def test_the_table_says_what_is_done_what_is_unmet_and_what_would_help(gpus: str) -> None:
    text = run("plan", "--scenario", gpus).stdout
    assert "12 machines, 5 needs of 5 clusters" in text
    assert "Needs met: 1 of 5" in text
    assert "2 Preempt   drain a machine for a more important need" in text
    assert "NO_MATCHING_SUPPLY" in text
    assert "on its way: 2 machines being drained for it" in text


def test_forty_columns_are_enough(gpus: str) -> None:
    text = run("plan", "--scenario", gpus, columns=40).stdout
    assert all(len(line) <= 40 for line in text.splitlines())
    assert "NO_MATCHING_SUPPLY" in text


def test_the_drawer_names_the_requirement_that_removes_the_last_candidate(gpus: str) -> None:
    text = run("plan", "--scenario", gpus, "--explain", "2").stdout
    assert "Need 2 of shop: unmet: NO_MATCHING_SUPPLY" in text
    assert "0 left after: topology.kubernetes.io/zone In [z-c]  <- removes the last" in text
    document = json.loads(
        run("plan", "--scenario", gpus, "--explain", "2", "--output", "json").stdout
    )
    assert document["removes_last_candidate"] == "topology.kubernetes.io/zone In [z-c]"


def test_the_drawer_of_a_gang_shows_its_domains(gpus: str) -> None:
    text = run("plan", "--scenario", gpus, "--explain", "1").stdout
    assert "TOPOLOGY_UNSATISFIABLE" in text
    assert "r-00000: covers 66.6 %, is too small" in text


def test_the_drawer_of_a_preemptor_shows_its_victims(gpus: str) -> None:
    text = run("plan", "--scenario", gpus, "--explain", "3").stdout
    assert "2 machines: m-0000000, m-0000001" in text


def test_the_drawer_of_a_met_need_says_where_its_machines_come_from(gpus: str) -> None:
    text = run("plan", "--scenario", gpus, "--explain", "4").stdout
    assert "Need 4 of web: met" in text
    assert "2 machines claimed: 0 held before, 0 taken from Idle, 2 to be created" in text


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"machines": [{"price": -1}]}', "machines[0].price: -1 is out of range"),
        ('{"machines": [{"price": NaN}]}', "machines[0].price: NaN is not a finite number"),
        ('{"machines": [{"colour": 1}]}', "machines[0].colour: unknown key with value 1"),
        ('{"machines": [{"count": 2}, {"start": 1}]}', "machine 'm-0000001' is already one of"),
        ('{"machines": [{"allocatable": {"cpu": "4x"}}]}', "'4x' is not a quantity"),
        (
            '{"needs": [{"cluster": "c", "requirements": [{"key": "k", "op": "Like"}]}]}',
            '"Like" is not known',
        ),
        ('{"needs": [{"cluster": "c", "interruption_bucket": 28}]}', "28 is out of range"),
        ('{"needs": ', "is not JSON"),
        ("\x00\x01", "is not JSON"),
    ],
)
def test_a_bad_file_is_one_line_and_exit_code_2(
    tmp_path: Path, content: str, complaint: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    result = run("plan", "--scenario", str(path))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"bigfleet: {path}: ")
    assert complaint in result.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["plan"], "Missing option '--scenario'"),
        (["plan", "--scenario", "nowhere.json"], "nowhere.json: cannot be read: No such file"),
        (["plan", "--scenario", "x", "--output", "xml"], "'xml'"),
        (["plan", "--scenario", "x", "--explain", "first"], "--explain"),
        (["plan", "--colour"], "--colour"),
        (["plant"], "plant"),
    ],
)
def test_a_bad_command_line_is_one_line_and_exit_code_2(words: list[str], complaint: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert complaint in result.stderr


def test_a_need_the_file_does_not_have_cannot_be_explained(gpus: str) -> None:
    result = run("plan", "--scenario", gpus, "--explain", "5")
    assert result.exit_code == 2
    assert "has no such need: its needs are 0 to 4" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["plan"],
        ["demo"],
        ["bench", "engine"],
        ["bench", "suite"],
        ["simulate", "loop"],
        ["simulate", "demo"],
    ],
)
def test_every_command_has_help_with_an_example(words: list[str]) -> None:
    result = run(*words, "--help")
    assert result.exit_code == 0
    assert "Example" in result.stdout


def test_the_version_is_printed() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("bigfleet ")


def test_the_time_of_a_decision_contains_no_compiling(
    gpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    decide = Engine.decide

    def decided(*args: object, **more: object) -> object:
        done.append("decide")
        return decide(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(engine_warm_up, "warm_up", lambda: done.append("warm up"))
    monkeypatch.setattr(Engine, "decide", decided)
    assert run("plan", "--scenario", gpus).exit_code == 0
    assert done[:2] == ["warm up", "decide"]


@pytest.mark.parametrize("compiled", [True, False])
def test_compiling_is_said_when_it_happens_and_only_then(
    monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    said: list[str] = []

    @contextmanager
    def stage(what: str, *, quiet: bool) -> Iterator[None]:
        assert not quiet
        said.append(what)
        yield

    monkeypatch.setattr(warm_up, "stage", stage)
    monkeypatch.setattr(engine_warm_up, "is_warm", lambda: compiled)
    monkeypatch.setattr(engine_warm_up, "warm_up", lambda: 0)
    warm_up.wake()
    assert any("Compiling" in what for what in said) is not compiled
