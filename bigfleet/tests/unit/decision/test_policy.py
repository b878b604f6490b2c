"""Drain grace by priority gap, and what a policy cannot say."""

from dataclasses import fields

import pytest

from bigfleet.decision import Policy
from bigfleet.decision.kernels.preempt import grace_of
from bigfleet.decision.policy import SECOND, TICK


@pytest.mark.parametrize(
    ("gap", "seconds"),
    [
        (1, 600),
        (100_000, 600),
        (100_001, 120),
        (500_000, 120),
        (500_001, 30),
        (900_000, 30),
        (900_001, 10),
        (2_000_000_000, 10),
    ],
)
def test_the_larger_the_gap_the_shorter_the_grace(gap: int, seconds: int) -> None:
    assert grace_of(gap) == seconds
    assert grace_of(gap) == seconds


def test_the_defaults_are_those_of_the_rules() -> None:
    policy = Policy()
    assert policy.reclaim_hold == 30 * SECOND
    assert policy.spot_release_hold == 60 * SECOND
    assert policy.on_demand_release_hold == 600 * SECOND
    assert policy.readiness_deadline == 900 * SECOND
    assert (policy.phantom_fraction, policy.phantom_minimum, policy.park_ticks) == (0.3, 3, 8)
    weights = policy.weights
    assert (weights.priority, weights.drain, weights.interruption, weights.reclamation) == (
        1.0, 0.1, 0.1, 0.1,
    )  # fmt: skip


def test_no_setting_can_release_owned_hardware() -> None:
    holds = {f.name for f in fields(Policy) if f.name.endswith("release_hold")}
    assert holds == {"spot_release_hold", "on_demand_release_hold"}


def test_a_tick_is_ten_seconds() -> None:
    assert TICK == 10 * SECOND == 10_000_000_000
