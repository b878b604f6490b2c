"""Machines change their shard while donor, recipient or coordinator die at any moment.

Invariants hold at every step: no machine has two owners, none is lost. In the end the shard that
lacked machines has them. A process dies between two of its callbacks, at an await; from a second
before a move is planned until it is over there are some hundred such moments. Every change tries a
few of each process, `make test-deep` all of them.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from bigfleet.coordinator.state import MovePhase
from bigfleet.provider.client import LIST_SECONDS
from bigfleet.shard.state.ownership import Transfer, TransferRole
from bigfleet.shard.state.ownership import _Known as Known
from sim.network import Weather
from sim.trace import InvariantError
from sizes import many
from whole.living import Whole, live
from whole.several import (
    TIERS,
    Window,
    owned_once,
    processes,
    starving,
    steps,
    until_helped,
    until_planned,
    until_still,
)

_log = logging.getLogger(__name__)

SECOND = 1_000_000_000
WHO = ("s1", "s2", "coordinator")
IS_NIGHT = os.environ.get("MODE") == "nightly"
MOMENTS = many(change=1, nightly=4, mutant=2, everything=4)
"""Of each process and tier, tried outside of the nightly run, which tries all."""
PARTS = 8 if IS_NIGHT else 1
"""Of all moments, so that workers can share them."""
GIVEN_UP = LIST_SECONDS + 10.0
"""Seconds after which the last caller has given up waiting for an answer that got lost."""
BEFORE = 1.0
"""Seconds before a move is planned, from which on a process dies."""


@functools.cache
def planned_at(tier: str) -> float:
    async def story(whole: Whole) -> float:
        await until_planned(whole)
        return whole.loop.time()

    return live(starving(tier), story)


async def until_just_before(whole: Whole, planned: float) -> None:
    await whole.until(lambda: whole.loop.time() >= planned - BEFORE, 300.0)
    assert whole.world.coordinator is not None
    assert not whole.world.coordinator.stored_moves()


@functools.cache
def undisturbed(tier: str) -> Window:
    planned = planned_at(tier)

    async def story(whole: Whole) -> Window:
        await until_just_before(whole, planned)
        begin = steps(whole)
        await until_helped(whole)
        return Window(begin, steps(whole))

    return live(starving(tier), story)


@pytest.mark.parametrize("tier", TIERS)
def test_what_one_shard_lacks_comes_from_another(tier: str) -> None:
    async def story(whole: Whole) -> None:
        await until_helped(whole)
        coordinator = whole.world.coordinator
        assert coordinator is not None
        done = [move for move in coordinator.stored_moves() if move.phase is MovePhase.DONE]
        assert sum(len(move.machine_ids) for move in done) == 2
        assert {(move.donor, move.recipient, move.tier.value) for move in done} == {
            ("s1", "s2", tier)
        }
        owned_once(whole)
        if tier != "preempt":
            # A drain takes as long as its grace; the rest must not.
            assert all(move.updated_at - move.created_at < 60 * SECOND for move in done)

    live(starving(tier), story)


def moments(tier: str, who: str, part: int) -> list[int]:
    there = undisturbed(tier).steps(who)
    gap = 1 if IS_NIGHT else max(1, there // MOMENTS)
    return list(range(1, there + 1, gap))[part::PARTS]


@pytest.mark.timeout(600 if not IS_NIGHT else 3600)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("tier", TIERS)
def test_no_machine_is_lost_or_doubled_whenever_anybody_dies(
    tier: str, who: str, part: int
) -> None:
    for step in moments(tier, who, part):

        async def story(whole: Whole, step: int = step) -> None:
            await until_just_before(whole, planned_at(tier))
            victim = processes(whole)[who]
            victim.crash_after(step)
            await until_helped(whole)
            assert not victim.alive
            await asyncio.sleep(60.0)
            await until_still(whole)
            owned_once(whole)

        try:
            live(starving(tier), story)
        except BaseException as error:
            error.add_note(f"{who} died {step} steps after a second before a move was planned")
            raise
    _log.info("%s: %s died at %d moments", tier, who, len(moments(tier, who, part)))


async def clear_up(whole: Whole) -> None:
    """Good weather until no caller waits for what was lost, and the help that a log asks for.

    A request whose double came first is fenced, and its shard acts no more until it is restarted.
    """
    whole.world.network.weather = Weather()
    await asyncio.sleep(GIVEN_UP)
    await whole.until(lambda: whole.is_started, 30.0, "the start of all shards")
    for name, process in processes(whole).items():
        if name != "coordinator" and process.alive and whole.shard_of(name).not_ready():
            process.crash()


@pytest.mark.parametrize("seed", range(1, many(change=4, nightly=200, mutant=4, everything=7)))
def test_no_machine_is_lost_or_doubled_in_bad_weather(seed: int) -> None:
    async def story(whole: Whole) -> None:
        whole.world.network.weather = Weather(
            delay=0.2, lost_request=0.15, lost_answer=0.15, duplicate=0.15, straggler=0.1
        )
        await until_planned(whole)
        for _ in range(6):
            await asyncio.sleep(whole.world.network.rng.uniform(0.0, 15.0))
            who = whole.world.network.rng.choice(WHO)
            processes(whole)[who].crash_after(whole.world.network.rng.randint(1, 200))
        await clear_up(whole)
        await until_helped(whole)
        await asyncio.sleep(60.0)
        await until_still(whole)
        owned_once(whole)

    live(starving(TIERS[seed % 3], seed), story)


# -- a shard that gets it wrong ------------------------------------------------------------------


def gives_badly(change: Callable[[Known, frozenset[str], Transfer], Known]) -> None:
    """A donor that writes down something else than it should."""

    async def story(whole: Whole) -> None:
        owner = whole.shard_of("s1").ownership

        async def give(move_id: str, machine_ids: Iterable[str]) -> None:
            ids = frozenset(machine_ids)
            given = Transfer(move_id, TransferRole.DONOR, tuple(sorted(ids)))
            await owner._change(lambda known: change(known, ids, given))

        owner.give = give  # type: ignore[method-assign]
        await until_helped(whole)

    live(starving(), story)


def test_a_donor_that_keeps_what_it_gave_is_noticed() -> None:
    def keeps(known: Known, ids: frozenset[str], given: Transfer) -> Known:
        return replace(known, transfers=(given,))

    with pytest.raises(InvariantError, match="is owned by s1 and s2"):
        gives_badly(keeps)


def test_a_donor_that_does_not_remember_giving_is_noticed() -> None:
    def forgets(known: Known, ids: frozenset[str], given: Transfer) -> Known:
        return replace(known, given=known.given | ids)

    with pytest.raises(InvariantError, match="no shard owns it or gave it away"):
        gives_badly(forgets)
