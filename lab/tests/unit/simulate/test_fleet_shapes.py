"""Drawn fleets: the same for the same seed, wide over many seeds, and legal inputs of an engine."""

from __future__ import annotations

from collections import Counter

import pytest

from bigfleet.model import MachineState
from bigfleet_lab.bench_shapes.timings import time_fresh, time_settled
from bigfleet_lab.simulate.drawn_fleets import draw_fleet
from bigfleet_lab.simulate.fleet_shapes import (
    MOST_CLUSTERS,
    Stamps,
    draw_shape,
    one_cluster,
    without_limits,
)


def test_a_seed_gives_the_same_fleet_every_time() -> None:
    for seed in range(5):
        first, second = (draw_fleet(draw_shape(seed, 300, 30)) for _ in range(2))
        assert first == second


def test_shapes_reach_from_one_cluster_to_hundreds_and_from_empty_to_nearly_full() -> None:
    shapes = [draw_shape(seed, 50_000, 2_000) for seed in range(300)]
    clusters = Counter(shape.clusters for shape in shapes)
    assert clusters[1] > 30
    assert MOST_CLUSTERS // 2 < max(clusters) <= MOST_CLUSTERS
    assert {shape.bound for shape in shapes} >= {0.0, 0.9}
    assert {shape.stamps for shape in shapes} == set(Stamps)
    assert min(shape.needs for shape in shapes) < 200 < 1_500 < max(s.needs for s in shapes)
    for name in ("gangs", "spread", "tiny", "everything", "quotas", "spend_limit", "cooling"):
        assert {bool(getattr(shape, name)) for shape in shapes} == {False, True}, name


@pytest.mark.parametrize("seed", range(12))
def test_every_machine_is_made_once_and_bound_only_where_a_row_holds_it(seed: int) -> None:
    fleet = draw_fleet(draw_shape(seed, 400, 60))
    assert len({m.id for m in fleet.machines}) == len(fleet.machines) == 400
    clusters = {need.cluster for need in fleet.needs}
    for m in fleet.machines:
        assert (m.state is MachineState.CONFIGURED) == bool(m.cluster)
        assert not m.cluster or m.cluster in clusters
    assert fleet.facts.keys() == clusters


def test_one_cluster_owns_every_row_and_every_bound_machine() -> None:
    fleet = draw_fleet(one_cluster(7, 500, 40))
    assert {need.cluster for need in fleet.needs} == {"c-000"}
    assert {m.cluster for m in fleet.machines} == {"", "c-000"}


def test_a_shape_without_limits_has_none() -> None:
    limited = [draw_shape(s, 300, 30) for s in range(100)]
    assert any(draw_fleet(shape).policy.quotas for shape in limited)
    for shape in limited[:30]:
        fleet = draw_fleet(without_limits(shape))
        assert not fleet.policy.quotas
        assert fleet.policy.spend_limit_micro is None
        assert not fleet.cooling


def test_decisions_on_a_shape_are_timed_fresh_and_settled() -> None:
    fresh = time_fresh(draw_shape(3, 300, 30))
    assert len(fresh.ms) == 1
    assert fresh.digest
    settled = time_settled(draw_shape(3, 300, 30))
    assert len(settled.ms) == 30
