"""The soak in short: what `make soak` runs for ten minutes, on a fleet a fifth of its size."""

from __future__ import annotations

import pytest

from whole.soaking import Soak, run


def test_after_some_churn_every_machine_is_home_and_nothing_has_grown() -> None:
    soaked = run(Soak(cycles=500, warm_up=250, idle=100, speculative=200, clusters=10, slack=600))
    assert soaked.cycles == 500
    assert not soaked.complaints
    assert soaked.unforced == 0
    assert soaked.actions["Reclaim"] > 50
    assert soaked.actions["Provision"] > 25


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_after_two_thousand_cycles_of_churn_every_machine_is_home_and_nothing_has_grown() -> None:
    soaked = run(Soak(cycles=2_000, warm_up=700, idle=100, speculative=200, clusters=10, slack=600))
    assert soaked.cycles == 2_000
    assert not soaked.complaints
    assert soaked.unforced == 0
    assert soaked.actions["Reclaim"] > 200
    assert soaked.actions["Provision"] > 100
