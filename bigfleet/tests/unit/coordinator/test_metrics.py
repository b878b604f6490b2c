"""The catalogue of the coordinator, as promised to users, against what a fresh process exports.

One line per metric: name, type, then each label with its values. `...` is an open label: no series
before its first event.
"""

from __future__ import annotations

import itertools

from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from bigfleet.observe.coordinator import CoordinatorMetrics
from bigfleet.observe.distribution import LONG, MEDIUM

CATALOGUE = """
raft_term                             gauge
is_leader                             gauge
has_leader                            gauge
leader_changes_total                  counter
apply_total                           counter      outcome=success,error,fsm_error
store_duration_seconds                histogram-M  op=get,range,put,txn,lease
store_errors_total                    counter      op=get,range,put,txn,lease reason=timeout,unavailable,conflict,no_space,other
store_term                            gauge
state_entries                         gauge        table=shards,clusters,domains,quotas,providers,moves
pending_instructions                  gauge        shard=...
shard_report_age_seconds              gauge        shard=...
rebalance_moves_total                 counter      tier=idle,quota,preempt outcome=planned,done,abandoned
rebalance_machines_total              counter      tier=idle,quota,preempt
rebalance_suppressed_total            counter      reason=cooldown,no_donor,donor_margin,topology,too_young
rebalance_sweep_duration_seconds      histogram-M
rebalance_adoption_seconds            histogram-L
snapshot_exports_total                counter      outcome=success,error
snapshot_last_success_timestamp_seconds gauge      shard=...
identity_rejected_total               counter      surface=shard,admin,read
addresses_refused_total               counter
"""  # noqa: E501 - a table
BOUNDS = {"M": MEDIUM, "L": LONG}
PREFIX = "bigfleet_coordinator_"
Series = tuple[str, frozenset[tuple[str, str]]]


class World:
    """Metrics with a clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 1000
        self.metrics = CoordinatorMetrics(lambda: self.seconds * 10**9, version="1", revision="a")

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(PREFIX + name, labels)

    def exported(self) -> tuple[dict[str, str], dict[Series, float]]:
        types: dict[str, str] = {}
        series: dict[Series, float] = {}
        text = generate_latest(self.metrics.registry).decode()
        for family in text_string_to_metric_families(text):
            types[family.name] = family.type
            for sample in family.samples:
                series[sample.name, frozenset(sample.labels.items())] = sample.value
        return types, series


def promised() -> tuple[dict[str, str], set[Series]]:
    types: dict[str, str] = {}
    series: set[Series] = set()
    for line in CATALOGUE.strip().splitlines():
        name, kind, *labels = line.split()
        kind, _, bounds = kind.partition("-")
        full = PREFIX + name
        types[full.removesuffix("_total")] = kind
        if any(label.endswith("=...") for label in labels):
            continue
        lists = [(key, v.split(",")) for key, _, v in (x.partition("=") for x in labels)]
        for values in itertools.product(*(values for _, values in lists)):
            fixed = frozenset(zip((key for key, _ in lists), values, strict=True))
            if kind == "histogram":
                edges = [*map(str, map(float, BOUNDS[bounds])), "+Inf"]
                series |= {(f"{full}_sum", fixed), (f"{full}_count", fixed)}
                series |= {(f"{full}_bucket", fixed | {("le", edge)}) for edge in edges}
            else:
                series.add((full, fixed))
    return types, series


def test_a_fresh_process_exports_the_catalogue_and_nothing_besides() -> None:
    types, series = World().exported()
    ours = {name: kind for name, kind in types.items() if name.startswith(PREFIX)}
    assert ours == promised()[0]
    mine = {key: value for key, value in series.items() if key[0].startswith(PREFIX)}
    assert set(mine) == promised()[1]
    assert not any(mine.values())


def test_it_says_what_it_is() -> None:
    _, series = World().exported()
    (info,) = [dict(key[1]) for key in series if key[0] == "bigfleet_build_info"]
    assert info["component"] == "coordinator"


def test_two_hundred_shards_stay_below_five_thousand_series() -> None:
    world = World()
    world.metrics.shards([f"s-{number}" for number in range(200)])
    assert len(world.exported()[1]) < 5000


def test_series_of_a_shard_are_there_while_it_is_registered() -> None:
    world = World()
    world.metrics.shards(["s-1", "s-2"])
    world.metrics.pending_instructions("s-1", 3)
    world.metrics.pending_instructions("s-9", 3)
    world.seconds += 7
    world.metrics.shard_reported("s-2")
    assert world.value("pending_instructions", shard="s-1") == 3
    assert world.value("pending_instructions", shard="s-9") is None
    assert world.value("shard_report_age_seconds", shard="s-1") == 7
    assert world.value("shard_report_age_seconds", shard="s-2") == 0
    world.metrics.shards(["s-2"])
    assert world.value("shard_report_age_seconds", shard="s-1") is None
    assert world.value("pending_instructions", shard="s-1") is None


def test_the_last_export_is_shown_by_a_leader_that_exports() -> None:
    world, name = World(), "snapshot_last_success_timestamp_seconds"
    world.metrics.leading(True)
    assert world.value(name) is None
    world.metrics.exports_expected()
    assert world.value(name) == 1000
    world.seconds += 5
    world.metrics.snapshot_exported("error")
    assert world.value(name) == 1000
    world.metrics.snapshot_exported("success")
    assert world.value(name) == 1005
    world.metrics.leading(False)
    assert world.value(name) is None


def test_moves_and_refusals_are_counted_by_their_labels() -> None:
    world = World()
    world.metrics.move("idle", "planned")
    world.metrics.machines_moved("idle", 4)
    world.metrics.move_suppressed("cooldown")
    world.metrics.sweep(0.1)
    world.metrics.adopted(20)
    world.metrics.identity_rejected("admin")
    world.metrics.store_call("txn", 0.01)
    world.metrics.store_error("txn", "timeout")
    world.metrics.store_term(9)
    assert world.value("rebalance_moves_total", tier="idle", outcome="planned") == 1
    assert world.value("rebalance_machines_total", tier="idle") == 4
    assert world.value("rebalance_suppressed_total", reason="cooldown") == 1
    assert world.value("rebalance_sweep_duration_seconds_count") == 1
    assert world.value("rebalance_adoption_seconds_sum") == 20
    assert world.value("identity_rejected_total", surface="admin") == 1
    assert world.value("store_duration_seconds_count", op="txn") == 1
    assert world.value("store_errors_total", op="txn", reason="timeout") == 1
    assert world.value("store_term") == 9
