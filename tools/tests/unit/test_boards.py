"""Grafana boards: what is committed is what is described, and asks for metrics that exist."""

import asyncio
import re

import pytest
from prometheus_client import CollectorRegistry

from bigfleet.observe.coordinator import CoordinatorMetrics
from bigfleet.observe.operator import OperatorMetrics
from bigfleet.observe.shard import ShardMetrics
from boards.fleet import FLEET
from boards.write import stale
from metric_reference import a_providers_registry

OUTSIDE = {"up"}
FUNCTIONS = {
    "histogram_quantile", "sum", "max", "min", "rate", "increase", "time", "by", "le",
}  # fmt: skip
ROWS = ("Overview", "Coordinator", "Shard", "Demand", "Safety", "Operator", "Provider", "Cost")


def names_of(registry: CollectorRegistry) -> set[str]:
    """What a process exports, series that appear with their first event included."""
    collected = {s.name for family in registry.collect() for s in family.samples}
    families = {family.name for family in registry.collect()}
    return set(registry._names_to_collectors) | collected | families


@pytest.fixture(scope="module")
def exported() -> set[str]:
    shard = ShardMetrics(lambda: 0, version="0")
    shard.tls_expiry("server", 1.0)
    registries = (
        shard.registry,
        CoordinatorMetrics(lambda: 0, version="0").registry,
        OperatorMetrics(lambda: 0, version="0").registry,
        asyncio.run(a_providers_registry()),
    )
    return set().union(*(names_of(registry) for registry in registries))


def metrics_in(expression: str) -> set[str]:
    """Names of metrics in a query."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|by \([^)]*\)", "", expression)
    return {word for word in re.findall(r"[a-z_][a-z0-9_]*", bare) if word not in FUNCTIONS}


def test_the_files_are_what_the_description_says() -> None:
    assert stale() == []


@pytest.mark.parametrize("expression", sorted(set(FLEET.expressions())))
def test_a_query_asks_for_metrics_that_a_process_exports(
    expression: str, exported: set[str]
) -> None:
    assert metrics_in(expression) <= exported | OUTSIDE


def test_a_board_has_all_its_rows_and_panels_do_not_overlap() -> None:
    document = FLEET.document()
    assert (document["uid"], [row.title for row in FLEET.rows]) == ("bigfleet-fleet", list(ROWS))
    taken: set[tuple[int, int]] = set()
    for panel in document["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    ids = [panel["id"] for panel in document["panels"]]
    assert len(set(ids)) == len(ids)


def test_panels_ask_what_they_are_called() -> None:
    metrics_in = {p.title: [q.expr for q in p.queries] for row in FLEET.rows for p in row.panels}
    assert all("bigfleet_shard_cycles_total" in expr for expr in metrics_in["Changes per cycle"])
    shares = [
        re.findall(r"histogram_quantile\(([\d.]+)", e)[0] for e in metrics_in["Roll-up quantiles"]
    ]
    assert shares == ["0.5", "0.95", "0.99"]
