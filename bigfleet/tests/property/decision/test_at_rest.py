"""Property 7 on fleets of any shape: at unchanged demand a fleet comes to rest without a step back.

Shapes are drawn from the laboratory's generator, with every kind of row, limit and memory that it
knows, and transitions end in any order after a random number of cycles. A reclaim is legal only
where the plan gives the reason of a decision page (`LEGAL_CAUSES`); nothing is acquired in vain.
"""

from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt
import pytest

from bigfleet.decision import ActionKind, Plan
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
KNOWN = [15, 20, 242, 576, 115, 150, 205, 323, 331]
"""Seeds that reclaimed what they had claimed, or acquired in vain, by rules that we had."""
LEGAL_CAUSES = {"its gang has moved to ": "0101"}
"""How the plan's reason for a reclaim of what a row has claimed begins, and the decision page."""
PAGES = Path(__file__).parents[4] / "docs/adr"


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
    claimed = np.zeros(0, np.bool_)
    for _ in range(slowest + LONGEST_HOLD + 60 + slowest):
        plan = loop.step()
        claimed = claimed if len(claimed) else np.zeros(len(plan.claimed), np.bool_)
        assert not unnamed_reclaims(plan, claimed), seed
        claimed |= plan.claimed >= 0
        if loop.settled_at is not None and loop.cycle > loop.settled_at + LONGEST_HOLD:
            break
    assert loop.cycle_ns == 10 * SECOND
    assert loop.settled_at is not None, (seed, loop.reports[-3:])
    assert loop.reclaims_at_unchanged_demand == 0, seed
    assert loop.over_acquisition == 0, seed


def unnamed_reclaims(plan: Plan, claimed: npt.NDArray[np.bool_]) -> list[str]:
    """Reclaims of machines that a row has claimed, for a reason of no decision page."""
    kinds, machines = plan.actions.kind, plan.actions.machine
    taken_back = np.flatnonzero((kinds == ActionKind.RECLAIM) & claimed[machines])
    reasons = [plan.why(index) for index in taken_back.tolist()]
    return [reason for reason in reasons if not reason.startswith(tuple(LEGAL_CAUSES))]


def test_each_legal_cause_of_a_reclaim_has_a_decision_page() -> None:
    for number in LEGAL_CAUSES.values():
        (page,) = PAGES.glob(f"{number}-*.md")
        assert "Status: accepted" in page.read_text()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_fleet_of_any_shape_comes_to_rest_without_a_step_back(chunk: int) -> None:
    for seed in range(chunk, many(8, 1_000, 4, everything=100), CHUNKS):
        comes_to_rest(seed, smaller(seed))


@pytest.mark.parametrize("seed", KNOWN[: many(4, 9, 1, everything=9)])
def test_seeds_that_once_took_a_step_back_no_longer_do(seed: int) -> None:
    comes_to_rest(seed, smaller(seed))


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20))
def test_large_fleets_of_any_shape_come_to_rest(seed: int) -> None:
    comes_to_rest(seed, _loop(seed, 50_000))
