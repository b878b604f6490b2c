"""What users are promised to find in Prometheus, asked of a real one that watches a whole system.

One system of real processes for all of it: a pod is created, a machine made for it, a domain
assigned. Every promised query then has an answer; every panel and every alert makes sense to
Prometheus and finds its series, but for those that say here why a healthy young system has none.
"""

import math
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml
from prometheus_server import Prometheus, binary, watching
from whole_system import DOMAIN, System, a_system, eventually

from boards.fleet import EXPIRY, FLEET, PRICED
from boards.promised import IDENTITIES, PHASES, PROMISED

pytestmark = pytest.mark.timeout(600)
RULES = Path(__file__).parents[2] / "deploy" / "helm" / "bigfleet" / "files" / "alerts.yaml"
COMPARED = re.compile(r" (?:>|<|==) ")
NOT_HERE = {
    EXPIRY: "nothing here speaks TLS",
    PRICED: "the fake has no live prices",
    "bigfleet_shard_rollup_quarantined": "no roll-up was ever held back",
    "bigfleet_shard_rollups_rejected_total": "no roll-up was ever refused",
    "bigfleet_provider_api_": "the fake calls no substrate",
    " offset 1d": "nothing here is a day old",
    " offset 1h": "nothing here is an hour old",
    'code!="OK"': "no call has failed",
}


def groups() -> list[dict[str, list[dict[str, str]]]]:
    found = yaml.safe_load(RULES.read_text("utf-8"))
    assert isinstance(found, list)
    return found


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    binary("prometheus")
    with a_system(tmp_path_factory.mktemp("system")) as made:
        yield made


@pytest.fixture(scope="module")
def prometheus(system: System) -> Iterator[Prometheus]:
    """One that has seen a pod get its machine."""
    with watching(system.folder / "prometheus", system.targets, groups()) as made:
        eventually(lambda: made.up() == len(system.targets), "every target answers")
        assert "belongs to shard" in system.control("assign-domain", DOMAIN, "s-0")
        for n in range(3):
            system.ask(f"web-{n}")
        eventually(system.api.join, "a machine became a node")
        eventually(lambda: not unanswered(made), "every promised query has an answer")
        yield made


def unanswered(prometheus: Prometheus) -> list[str]:
    """Promised queries without a sample, or with one that is no number."""
    found = {one.number: prometheus.query(one.young) for one in PROMISED}
    return [
        number
        for number, values in found.items()
        if not values or any(math.isnan(value) for value in values.values())
    ]


def equal(prometheus: Prometheus, left: str, right: str) -> bool:
    return prometheus.query(left) == prometheus.query(right)


def absent(expression: str) -> bool:
    """Whether this system cannot have what is asked for."""
    return any(word in expression for word in NOT_HERE)


def test_every_promised_query_has_an_answer(prometheus: Prometheus) -> None:
    assert unanswered(prometheus) == []


def test_prometheus_understands_every_promised_query(prometheus: Prometheus) -> None:
    for one in PROMISED:
        prometheus.query(one.expr)


def test_every_panel_finds_its_series(prometheus: Prometheus) -> None:
    empty = []
    for expression in FLEET.expressions():
        asked = re.sub(r"\$\w+", ".*", expression)
        found = prometheus.query(asked)
        if not found and not COMPARED.search(asked) and not absent(asked):
            empty.append(asked)
    assert empty == []


def test_every_alert_asks_for_series_that_are_there(prometheus: Prometheus) -> None:
    empty = []
    for rule in (rule for group in groups() for rule in group["rules"]):
        asked = COMPARED.split(rule["expr"], maxsplit=1)[0]
        if not prometheus.query(asked) and not absent(asked):
            empty.append(rule["alert"])
    assert empty == []


def test_every_rule_can_be_evaluated(prometheus: Prometheus) -> None:
    eventually(lambda: "unknown" not in prometheus.rule_health().values(), "rules were evaluated")
    assert set(prometheus.rule_health().values()) == {"ok"}


def test_numbers_that_speak_of_the_same_agree(prometheus: Prometheus, system: System) -> None:
    for left, right in IDENTITIES:
        eventually(partial(equal, prometheus, left, right), f"{left} is {right}")
    phases = "sum by (pod, phase) (bigfleet_shard_cycle_phase_duration_seconds_count)"
    shards = sum(1 for target in system.targets if target.job == "bigfleet-shard")
    assert len(prometheus.query(phases)) == PHASES * shards


def test_no_process_shows_more_than_five_thousand_series(prometheus: Prometheus) -> None:
    per_target = prometheus.query("scrape_samples_scraped")
    assert max(per_target.values()) <= 5_000
