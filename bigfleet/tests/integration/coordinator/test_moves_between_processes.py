"""Machines change shards between real processes: a coordinator, shards and a provider.

While they do, every shard is asked what it has, again and again: no machine is in two of them, none
is lost, and in the end nothing is unmet. That holds as well when a process is killed meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

import pytest

from bigfleet_lab.bench_coordinator.moving import THREE, TWO, Meanwhile, Running, Scene, move

BAR_SECONDS = 60.0
SMALL = Scene(shards=2, machines=2_000, lacking=50, special=100)
RECIPIENT, DONOR, LEADER = "recipient", "donor", "leader"
PHASES = ("planned", "donor_released", "recipient_adopted", "done")
LOOK_SECONDS = 0.02

_log = logging.getLogger(__name__)


def killed(who: Collection[str], phase: str) -> Meanwhile:
    """Some processes die as soon as a move is so far, and come back."""

    async def happens(running: Running) -> None:
        far = PHASES[PHASES.index(phase) :]
        while not any(one.phase in far for one in await running.owners.moves()):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
        least = SMALL.machines // SMALL.shards - SMALL.lacking
        numbers = [number for number, name in enumerate((RECIPIENT, DONOR)) if name in who]
        dying = [running.restart(number, least) for number in numbers]
        if LEADER in who:
            dying.append(running.restart_leader())
        await asyncio.gather(*dying)

    return happens


@pytest.mark.exhaustive
@pytest.mark.timeout(420)
async def test_a_shortfall_is_met_with_machines_of_another_shard() -> None:
    told = await move(SMALL)
    assert told.moves == [("TIER_IDLE", "done")]
    assert told.samples > 10


@pytest.mark.timeout(420)
async def test_machines_arrive_once_although_everybody_is_killed() -> None:
    told = await move(SMALL, killed((RECIPIENT, DONOR, LEADER), "planned"))
    assert ("TIER_IDLE", "done") in told.moves


@pytest.mark.deep
@pytest.mark.timeout(420)
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("who", [RECIPIENT, DONOR, LEADER])
async def test_machines_arrive_once_whichever_process_is_killed(who: str, phase: str) -> None:
    told = await move(SMALL, killed((who,), phase))
    _log.info("%s killed when %s: %s", who, phase, told)
    assert ("TIER_IDLE", "done") in told.moves


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
