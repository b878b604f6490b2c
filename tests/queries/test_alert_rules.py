"""Alert rules: promtool can read them, each fires when it should, and none when it should not."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from alert_cases import CASES, promtool_document
from prometheus_server import binary

RULES = Path(__file__).parents[2] / "deploy" / "helm" / "bigfleet" / "files" / "alerts.yaml"


@pytest.fixture(scope="module")
def groups() -> list[dict[str, Any]]:
    found = yaml.safe_load(RULES.read_text("utf-8"))
    assert isinstance(found, list)
    return found


def promtool(*words: str) -> str:
    done = subprocess.run(
        [binary("promtool"), *words], capture_output=True, text=True, check=False, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_reads_the_rules(groups: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": groups}))
    promtool("check", "rules", str(path))


def test_every_alert_has_a_case_that_fires_and_one_that_does_not(
    groups: list[dict[str, Any]],
) -> None:
    alerts = {rule["alert"].removeprefix("BigFleet") for group in groups for rule in group["rules"]}
    assert alerts == set(CASES)


def test_every_alert_fires_when_it_should_and_is_quiet_otherwise(
    groups: list[dict[str, Any]], tmp_path: Path
) -> None:
    written = []
    for rule in (rule for group in groups for rule in group["rules"]):
        # One file each: promtool evaluates all rules of a file for every test in it.
        name = rule["alert"].removeprefix("BigFleet")
        rules, tests = tmp_path / f"{name}.yaml", tmp_path / f"{name}.test.yaml"
        rules.write_text(yaml.safe_dump({"groups": [{"name": "one", "rules": [rule]}]}))
        document = promtool_document(rule, CASES[name], str(rules))
        tests.write_text(yaml.safe_dump(document))
        written.append(str(tests))
    promtool("test", "rules", *written)
