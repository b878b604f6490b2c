"""What users are promised to find in Prometheus, asked of a whole system that runs.

One system of real processes for all of it: a pod is created, a machine made for it, a domain
assigned. Every question is asked twice: of our own scrapes and evaluator, which need nothing, and
of a real Prometheus where there is one. Every promised query then has an answer; every panel and
every alert makes sense and finds its series, but for those that say here why a healthy young system
has none. Both evaluators give the same answers from the same samples.
"""

import math
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
import yaml
from own_watch import OwnWatch, watching_ourselves
from prometheus_server import Prometheus, binary, watching
from whole_system import DOMAINS, System, a_system, eventually

from boards.fleet import EXPIRY, FLEET, PRICED
from boards.promised_queries import IDENTITIES, PHASES, PROMISED
from promql import Samples, evaluate, parse

pytestmark = pytest.mark.timeout(600)
RULES = Path(__file__).parents[2] / "deploy" / "helm" / "bigfleet" / "files" / "alerts.yaml"
COMPARED = re.compile(r" (?:>|<|==) ")
NOT_HERE = {
    EXPIRY: "nothing here speaks TLS",
    PRICED: "the fake has no live prices",
    "bigfleet_shard_rollup_quarantined": "no roll-up was ever held back",
    "bigfleet_shard_rollups_rejected_total": "no roll-up was ever refused",
    "bigfleet_shard_rollups_over_limit_total": "no roll-up was beyond a limit",
    "bigfleet_provider_api_": "the fake calls no substrate",
    " offset 1d": "nothing here is a day old",
    " offset 1h": "nothing here is an hour old",
    'code!="OK"': "no call has failed",
}
Watch = OwnWatch | Prometheus


def groups() -> list[dict[str, list[dict[str, str]]]]:
    found = yaml.safe_load(RULES.read_text("utf-8"))
    assert isinstance(found, list)
    return found


def alert_expressions() -> list[str]:
    return [rule["expr"] for group in groups() for rule in group["rules"]]


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """One in which a pod got its machine."""
    with a_system(tmp_path_factory.mktemp("system")) as made:
        for domain in DOMAINS:
            assert "belongs to shard" in made.control("assign-domain", domain, "s-0")
        for n in range(3):
            made.ask(f"web-{n}")
        eventually(made.api.join, "a machine became a node")
        yield made


@pytest.fixture(scope="module")
def prometheus(system: System) -> Iterator[Prometheus]:
    """A real one, which has seen enough."""
    binary("prometheus")
    with watching(system.folder / "prometheus", system.targets, groups()) as made:
        yield seen_enough(made, system)


@pytest.fixture(scope="module", params=["our own", "Prometheus"])
def watch(request: pytest.FixtureRequest, system: System) -> Iterator[Watch]:
    """The server that is asked."""
    if request.param == "Prometheus":
        yield request.getfixturevalue("prometheus")
        return
    with watching_ourselves(system.targets) as made:
        seen_enough(made, system)
        yield made


W = TypeVar("W", OwnWatch, Prometheus)


def seen_enough(watch: W, system: System) -> W:
    eventually(lambda: watch.up() == len(system.targets), "every target answers")
    for n in range(3):
        system.ask(f"more-{n}", cpu="2")
    eventually(lambda: not unanswered(watch), "every promised query has an answer")
    return watch


def unanswered(watch: Watch) -> list[str]:
    """Promised queries without a sample, or with one that is not a number."""
    found = {one.number: watch.query(one.young) for one in PROMISED}
    return [
        number
        for number, values in found.items()
        if not values or any(math.isnan(value) for value in values.values())
    ]


def equal(watch: Watch, left: str, right: str) -> bool:
    return watch.query(left) == watch.query(right)


def absent(expression: str) -> bool:
    """Whether this system cannot have what is asked for."""
    return any(word in expression for word in NOT_HERE)


def test_every_promised_query_has_an_answer(watch: Watch) -> None:
    assert unanswered(watch) == []


def test_every_promised_query_is_understood(watch: Watch) -> None:
    for one in PROMISED:
        watch.query(one.expr)


def test_every_panel_finds_its_series(watch: Watch) -> None:
    empty = []
    for expression in FLEET.expressions():
        asked = re.sub(r"\$\w+", ".*", expression)
        found = watch.query(asked)
        if not found and not COMPARED.search(asked) and not absent(asked):
            empty.append(asked)
    assert empty == []


def test_every_alert_asks_for_series_that_are_there(watch: Watch) -> None:
    empty = []
    for expression in alert_expressions():
        asked = COMPARED.split(expression, maxsplit=1)[0]
        watch.query(expression)
        if not watch.query(asked) and not absent(asked):
            empty.append(expression)
    assert empty == []


def test_numbers_that_speak_of_the_same_agree(watch: Watch, system: System) -> None:
    for left, right in IDENTITIES:
        eventually(partial(equal, watch, left, right), f"{left} is {right}")
    phases = "sum by (pod, phase) (bigfleet_shard_cycle_phase_duration_seconds_count)"
    shards = sum(1 for target in system.targets if target.job == "bigfleet-shard")
    assert len(watch.query(phases)) == PHASES * shards


def test_every_rule_can_be_evaluated(prometheus: Prometheus) -> None:
    eventually(lambda: "unknown" not in prometheus.rule_health().values(), "rules were evaluated")
    assert set(prometheus.rule_health().values()) == {"ok"}


def test_no_process_shows_more_than_five_thousand_series(prometheus: Prometheus) -> None:
    assert max(prometheus.query("scrape_samples_scraped").values()) <= 5_000


def test_our_evaluator_and_prometheus_agree_on_the_same_samples(prometheus: Prometheus) -> None:
    # A little in the past: a scrape that is being written has the time at which it began.
    at = math.floor(time.time()) - 5.0
    samples = Samples()
    for labels, seen in prometheus.samples('{__name__=~"bigfleet_.*|up"}[10m]', at).items():
        samples.add(labels, seen)
    asked = {one.young for one in PROMISED} | {one.expr for one in PROMISED}
    asked |= {re.sub(r"\$\w+", ".*", one) for one in FLEET.expressions()} | {*alert_expressions()}
    for expression in sorted(one for one in asked if "90d" not in one):
        ours = evaluate(parse(expression), samples, at)
        theirs = prometheus.query(expression, at)
        assert ours.keys() == theirs.keys(), expression
        for labels, value in theirs.items():
            assert ours[labels] == pytest.approx(value, rel=1e-6, abs=1e-9, nan_ok=True), expression
