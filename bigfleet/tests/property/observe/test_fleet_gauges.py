"""Gauges of generated fleets against a count of one machine after the other."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigfleet.model import Machine, PenaltyBucket
from bigfleet.observe.shard import ShardMetrics, ShortfallCounts
from fleets import NOW, case
from living import Living


def label_of(machine: Machine) -> tuple[str, str, str]:
    kind = machine.capacity_type.camel or "BareMetal"
    stamp = machine.stamp if machine.cluster else None
    bucket = stamp.interruption if stamp else PenaltyBucket.ZERO
    return machine.state.title, kind, bucket.label


@given(st.integers(0, 10_000))
def test_gauges_are_sums_over_the_machines_and_rows_of_one_cycle(seed: int) -> None:
    made = case(seed)
    living = Living(policy=made.policy, facts=made.facts)
    plan = living.plan(made.machines, made.needs, NOW)
    metrics = ShardMetrics(lambda: NOW, version="1")
    counts = ShortfallCounts(3, (1, 0, 2, 0), (3, 0, 0, 0))
    metrics.decided(plan, made.policy, NOW, counts, {}, {"absent": 2})
    samples = {
        (sample.name.removeprefix("bigfleet_shard_"), *sorted(sample.labels.items())): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
    }

    def value(name: str, **labels: str) -> float:
        return samples.get((name, *sorted(labels.items())), 0.0)

    machines = Counter(label_of(machine) for machine in made.machines)
    for (state, kind, bucket), count in machines.items():
        labels = {"state": state, "capacity_type": kind, "interruption_penalty_bucket": bucket}
        assert value("inventory_machines", **labels) == count
    whole = [v for key, v in samples.items() if key[0] == "inventory_machines"]
    assert sum(whole) == len(made.machines)

    rows = Counter(need.profile.interruption.label for need in made.needs)
    for bucket in (penalty.label for penalty in PenaltyBucket):
        assert value("demand_machines", interruption_penalty_bucket=bucket) == rows[bucket]

    spend: Counter[tuple[str, str]] = Counter()
    for machine in made.machines:
        if machine.state.title != "Speculative":
            state, kind, _ = label_of(machine)
            spend[kind, state] += round(machine.price_per_hour * 1e6)
    for kind in ("BareMetal", "Reserved", "OnDemand", "Spot"):
        for state in ("Creating", "Idle", "Configured", "Draining", "Failed"):
            shown = value("spend_dollars_per_hour", capacity_type=kind, state=state)
            assert shown == pytest.approx(spend[kind, state] / 1e6)

    assert value("shortfalls") == 3
    assert value("shortfalls_by_priority", priority_class="batch") == 2
    assert value("phantom_machines", reason="absent") == 2
    phantom = value("phantom_machines", reason="node_not_ready")
    late = [
        machine
        for machine in made.machines
        if machine.not_ready_since_ns
        and NOW - machine.not_ready_since_ns > made.policy.readiness_deadline
    ]
    assert phantom <= len(late)
