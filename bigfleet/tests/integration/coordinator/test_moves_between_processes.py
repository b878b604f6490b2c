"""Machines change shards between real processes: a coordinator, shards and a provider.

While they do, every shard is asked what it has, again and again: no machine is in two of them, none
is lost, and in the end nothing is unmet.
"""

from __future__ import annotations

import logging

import pytest

from bigfleet.cli.bench_coordinator.moving import THREE, TWO, Scene, move

BAR_SECONDS = 60.0
_log = logging.getLogger(__name__)

SMALL = Scene(shards=2, machines=2_000, lacking=50, special=100)


@pytest.mark.timeout(420)
async def test_a_shortfall_is_met_with_machines_of_another_shard() -> None:
    told = await move(SMALL)
    assert told.moves == [("TIER_IDLE", "done")]
    assert told.samples > 10


@pytest.mark.deep
@pytest.mark.timeout(900)
async def test_among_100_000_machines_they_are_adopted_within_a_minute() -> None:
    told = await move(TWO)
    _log.info("two shards: %s", told)
    assert told.seconds <= BAR_SECONDS
    assert {phase for _, phase in told.moves} == {"done"}


@pytest.mark.deep
@pytest.mark.timeout(900)
async def test_two_shards_cover_what_a_third_one_lacks() -> None:
    told = await move(THREE)
    _log.info("three shards: %s", told)
    assert told.seconds <= BAR_SECONDS
    assert {phase for _, phase in told.moves} == {"done"}
    assert len(told.moves) >= 2
