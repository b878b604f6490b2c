"""Property 7 on fleets of any shape: at unchanged demand a fleet comes to rest without a step back.

Shapes are drawn from the laboratory's generator, with every kind of row, limit and memory that it
knows, and transitions end in any order after a random number of cycles. A reclaim is legal only
where the plan names its cause; the one there is, a gang that moved, is that of ADR 0101.
"""

from random import Random

import pytest

from bigfleet.decision.policy import SECOND
from bigfleet_lab.simulate.drawn_fleets import draw_fleet
from bigfleet_lab.simulate.fleet_shapes import draw_shape
from bigfleet_lab.simulate.loop import Delay, Delays, Loop
from sizes import many

DELAYS = (
    Delays(),
    Delays(Delay(0, 0), Delay(0, 0), Delay(0, 0)),
    Delays(Delay(0, 20), Delay(0, 10), Delay(0, 20)),
)
LONGEST_HOLD = 60
"""Cycles of the longest hold and of the longest stock-out: ten minutes."""
CHUNKS = 4
KNOWN = [115, 150, 205, 323, 331]
"""Seeds that reclaimed what they had claimed, by rules that we had."""
MOST_IN_VAIN = 1
"""A machine may be Idle for its row just when the row takes another: a known limit."""


def smaller(seed: int) -> Loop:
    """A fleet of 100 to 3,000 machines in its loop."""
    rng = Random(seed * 31 + 7)
    return _loop(seed, int(100 * 30 ** rng.random()))


def _loop(seed: int, machines: int) -> Loop:
    shape = draw_shape(seed, machines, max(20, min(2_000, machines // 8)))
    return Loop(draw_fleet(shape).world(), DELAYS[seed % len(DELAYS)], seed)


def comes_to_rest(seed: int, loop: Loop) -> None:
    """Run for as long as delays, holds and 60 cycles take, and judge what was done."""
    slowest = loop.delays.create.most + loop.delays.configure.most + 2 * loop.delays.drain.most
    for _ in range(slowest + LONGEST_HOLD + 60 + slowest):
        loop.step()
        if loop.settled_at is not None and loop.cycle > loop.settled_at + LONGEST_HOLD:
            break
    assert loop.cycle_ns == 10 * SECOND
    assert loop.settled_at is not None, (seed, loop.reports[-3:])
    assert loop.reclaims_at_unchanged_demand == 0, seed
    assert loop.over_acquisition <= MOST_IN_VAIN, seed


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_fleet_of_any_shape_comes_to_rest_without_a_step_back(chunk: int) -> None:
    for seed in range(chunk, many(8, 1_000, 4, everything=100), CHUNKS):
        comes_to_rest(seed, smaller(seed))


@pytest.mark.parametrize("seed", KNOWN[: many(2, 5, 1, everything=5)])
def test_seeds_that_once_took_a_step_back_no_longer_do(seed: int) -> None:
    comes_to_rest(seed, smaller(seed))


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20))
def test_large_fleets_of_any_shape_come_to_rest(seed: int) -> None:
    comes_to_rest(seed, _loop(seed, 50_000))
