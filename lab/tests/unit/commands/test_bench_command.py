"""`bigfleet bench`: figures with the shape of the specification; a wrong result is not a figure."""

import json
import sys
from pathlib import Path

import pytest

from bigfleet.scenario.document import read_scenario
from bigfleet_lab.bench import suite
from bigfleet_lab.bench.suite import Bench, Figures, benchmarks
from commandline import run


def bench(**found: object) -> Bench:
    return Bench("engine.x.5000", 5_000, "ms", 3.0, "do", lambda: Figures(**found))  # type: ignore[arg-type]


TIMES = {"p50": 1.0, "p95": 1.5, "p99": 2.0, "max": 2.5}


def test_a_workload_can_be_written_and_its_file_measured(tmp_path: Path) -> None:
    path, found = tmp_path / "cold.json", tmp_path / "found.json"
    made = run(
        "simulate", "scenario", "--workload", "cold", "--machines", "300", "--out", str(path)
    )
    assert made.exit_code == 0
    assert read_scenario(path).machine_count == 300
    result = run("bench", "engine", "--scenario", str(path), "--cycles", "2", "--json", str(found))
    assert result.exit_code == 0
    assert "whole" in result.stdout
    document = json.loads(found.read_text())
    assert list(document["whole"]) == ["p50", "p95", "p99", "max"]
    assert document["unmet"] == 0


@pytest.mark.parametrize("form", [("--output", "json"), ("--json", "-")])
def test_a_steady_workload_is_measured_and_its_json_can_go_to_stdout(form: list[str]) -> None:
    result = run(
        *("bench", "engine", "--workload", "steady", "--machines", "300", "--cycles", "3"),
        *(*form, "--quiet"),
    )
    assert result.exit_code == 0
    assert json.loads(result.stdout)["unmet"] == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["engine"], "give one of --scenario FILE, --workload NAME and --suite"),
        (["engine", "--suite", "--workload", "cold"], "give one of"),
        (["engine", "--workload", "warm"], "workload 'warm' is unknown"),
        (["engine", "--workload", "cold", "--machines", "3"], "3 machines cannot be made"),
        (["engine", "--workload", "cold", "--cycles", "0"], "--cycles"),
        (["engine", "--scenario", "nowhere.json"], "nowhere.json: cannot be read"),
        (["suite", "--out", "x", "--only", "moon"], "--only moon: there is no such part"),
        (["suite", "--out", "x", "--sizes", "many"], "--sizes 'many'"),
        (["suite", "--sizes", "5000,777"], "--sizes 777: nothing is measured at that size"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(words: list[str], complaint: str) -> None:
    result = run("bench", *words)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert complaint in result.stderr


def test_every_bar_of_the_specification_has_a_benchmark() -> None:
    names = {bench.name for bench in benchmarks()}
    workloads = ("steady", "gangs", "cold", "reclaim", "preempt", "one-to-one")
    assert names >= {f"engine.{w}.{n}" for w in workloads for n in (5_000, 50_000, 500_000)}
    assert names >= {
        "engine.first-cycle.50000",
        "engine.per-need-gangs.50000",
        "engine.memory.500000",
        "inventory.load.500000",
    }


def test_a_result_within_its_bar_is_ok_and_one_above_it_is_not() -> None:
    row = bench(times=TIMES, runs=50, stddev=0.1).row()
    assert row["ok"] is True
    assert (row["p99"], row["value"], row["runs"]) == (2.0, None, 50)
    assert bench(times={**TIMES, "p99": 3.1}).row()["ok"] is False
    assert bench(value=2.0).row()["ok"] is True


def test_a_wrong_result_has_no_figure() -> None:
    row = bench(times=TIMES, complaints=("4 unmet needs, must be 0",)).row()
    assert row["ok"] is False
    assert [row[key] for key in ("p50", "p95", "p99", "max", "value", "stddev")] == [None] * 6


def test_the_suite_writes_its_file_and_fails_when_a_result_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bench" / "results.json"
    monkeypatch.setattr(suite, "benchmarks", lambda: iter([bench(times=TIMES)]))
    assert run("bench", "suite", "--out", str(path), "--only", "engine").exit_code == 0
    document = json.loads(path.read_text())
    assert list(document) == ["machine", "commit", "results"]
    assert document["machine"]["cores"] >= 1
    assert document["results"][0]["name"] == "engine.x.5000"
    wrong = bench(times=TIMES, complaints=("wrong",))
    monkeypatch.setattr(suite, "benchmarks", lambda: iter([bench(times=TIMES), wrong]))
    result = run("bench", "suite", "--out", str(path))
    assert result.exit_code == 1
    assert "1 of 2 not ok: engine.x.5000" in result.stderr


def test_a_part_from_outside_brings_its_own_rows(tmp_path: Path) -> None:
    rows = [{**bench(times=TIMES).row(), "name": "provider.x.8000"}]
    program = tmp_path / "rows.py"
    program.write_text(f"import json\nprint({json.dumps(json.dumps(rows))})\n")
    path = tmp_path / "results.json"
    outside = f"provider={sys.executable} {program}"
    words = ("bench", "suite", "--out", str(path), "--only", "provider", "--outside", outside)
    assert run(*words).exit_code == 0
    assert [row["name"] for row in json.loads(path.read_text())["results"]] == ["provider.x.8000"]


def test_a_part_from_outside_that_says_nothing_is_not_ok(tmp_path: Path) -> None:
    outside = f"provider={sys.executable} -c pass"
    words = ("bench", "suite", "--out", "-", "--only", "provider", "--outside", outside)
    result = run(*words)
    assert result.exit_code == 1
    assert "1 of 1 not ok: provider" in result.stderr
    assert run("bench", "suite", "--out", "-", "--outside", "provider").exit_code == 2


def test_a_part_measured_alone_keeps_the_rows_of_the_others(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    results.write_text(
        json.dumps(
            {
                "commit": "earlier",
                "results": [{"name": "engine.x.1", "value": 1}, {"name": "moon.far.1", "value": 2}],
            }
        )
    )
    row = {"name": "moon.far.1", "unit": "s", "ok": True, "value": 3.0, "bar": 9.0,
           **dict.fromkeys(("p50", "p99", "max"))}  # fmt: skip
    words = f"import json; print(json.dumps([{row!r}]))"
    result = run(
        *("bench", "suite", "--out", str(results), "--only", "moon"),
        *("--outside", f'moon={sys.executable} -c "{words}"'),
    )
    assert result.exit_code == 0
    kept, measured = json.loads(results.read_text())["results"]
    assert (kept["name"], kept["value"], kept["commit"]) == ("engine.x.1", 1, "earlier")
    assert (measured["name"], measured["value"]) == ("moon.far.1", 3.0)
    assert measured["commit"] != "earlier"
