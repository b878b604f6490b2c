"""What the engine pays against the least anyone could have paid in its place.

Each need is judged at its own turn, in the engine's order and with the machines the engine left it:
how much costlier were the machines taken for it than the cheapest set that covers what it lacked?
The rules are part of the question: Idle machines come before Speculative ones. So where the Idle
machines (those too risky for the need apart) cover it, the cheapest set is looked for among them;
where they do not, among all free machines, because what turns out redundant is given back. Needs
that could not be covered took all there was, and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from bigfleet.model import Machine, MachineState
from bigfleet_lab.simulate.drawn_fleets import draw_fleet
from bigfleet_lab.simulate.fleet_shapes import draw_shape, without_limits
from compare import fast_plan
from fleets import Case, Shape
from fleets import case as case_of
from oracle.world import Row, Vector, covered
from seen import Seen, see

S = MachineState
FLEETS = Shape(
    machines=40, needs=12, clusters=4, gangs=False, spread=False, limits=False, bound=False,
    odd_states=False,
)  # fmt: skip
_MICRO = 1e6


@dataclass(frozen=True)
class Comparison:
    """Effective cost in micro-dollars per hour: what was taken, and the optimum of that choice."""

    taken: int
    optimum: int

    @property
    def excess(self) -> float:
        """How much costlier, as a share of the optimum; 0 where the optimum costs nothing."""
        return self.taken / self.optimum - 1 if self.optimum else 0.0


def fleet(seed: int) -> Case:
    """A small fleet with nothing bound: 10 to 40 machines of various sizes, prices and risks."""
    rng = Random(seed)
    case = case_of(seed, replace(FLEETS, machines=rng.randint(10, 40)))
    machines = [replace(m, stamp=None, price_per_hour=_price(rng, m)) for m in case.machines]
    return replace(case, machines=machines)


def drawn_fleet(seed: int) -> Case:
    """A fleet of any shape without gangs, spread and limits; nothing bound where phase 2 acts."""
    rng = Random(seed)
    shape = without_limits(draw_shape(seed, rng.randint(20, 120), rng.randint(4, 30)))
    shape = replace(shape, gangs=0.0, spread=0.0)
    for bound in (shape.bound, 0.0):
        fleet = draw_fleet(replace(shape, bound=bound))
        case = Case(fleet.machines, fleet.needs, fleet.facts, fleet.policy, set(fleet.cooling))
        if see(case, fast_plan(case)).quiet():
            return case
    raise AssertionError(f"seed {seed}: phase 2 acts though nothing is bound")


def _price(rng: Random, m: Machine) -> float:
    """Prices that are neither all equal nor proportional to size, owned machines included."""
    return round(m.resources["cpu"] / 1000 * rng.uniform(0.02, 0.06), 4)


def compare_fleet(case: Case) -> Comparison:
    """The sum over all needs of a fleet whose deficit was covered."""
    view = see(case, fast_plan(case))
    taken = optimum = 0
    for row in view.rows:
        if not row.taken or not view.satisfied(row):
            continue
        taken += sum(_cost(view, row, m) for m in view.taken(row))
        optimum += _optimum(view, row)
    return Comparison(taken, optimum)


def _cost(view: Seen, row: Row, m: Machine) -> int:
    cost = view.world.cost(row, m)
    assert cost is not None
    return cost


def _optimum(view: Seen, row: Row) -> int:
    """The cheapest set the need could have taken at its turn."""
    gone = {mid for earlier in view.rows[: row.position] for mid in earlier.taken}
    pool = [
        m
        for m in view.machines.values()
        if m.state in (S.IDLE, S.SPECULATIVE)
        and m.id not in gone
        and view.world.may_place(row, m)
        and view.world.covers_unit(row, m)
        and view.world.offers_all(row, m)
        and view.world.cost(row, m) is not None
    ]
    idle = [m for m in pool if m.state is S.IDLE and not _behind(view, row, m, pool)]
    left = {d: row.need.aggregate[d] for d in row.demanded}
    for m in view.held(row):
        left = view.world.minus(row, left, m)
    for choice in (idle, pool):
        rest = left
        for m in choice:
            rest = view.world.minus(row, rest, m)
        if covered(rest):
            return _cheapest_cover(view, row, left, choice)
    raise AssertionError(f"row {row.position} was covered by the engine and is not coverable")


def _behind(view: Seen, row: Row, m: Machine, pool: list[Machine]) -> bool:
    """An Idle machine whose expected loss alone is more than the cheapest Speculative costs."""
    creating = [_cost(view, row, n) for n in pool if n.state is S.SPECULATIVE]
    loss = view.world.loss(row, m)
    return bool(creating) and loss is not None and loss > min(creating)


def _cheapest_cover(view: Seen, row: Row, left: Vector, choice: list[Machine]) -> int:
    """Least cost of machines whose contributions cover what is left: an integer programme."""
    missing = {d: v for d, v in left.items() if v > 0}
    if not missing:
        return 0
    cost = np.array([_cost(view, row, m) for m in choice], np.float64)
    gives = [view.world.contribution(row, m) for m in choice]
    amounts = np.array([[give[d] / v for give in gives] for d, v in missing.items()])
    found = milp(
        cost / _MICRO,
        constraints=LinearConstraint(amounts, lb=1.0 - 1e-9),
        integrality=np.ones(len(choice)),
        bounds=Bounds(0, 1),
    )
    assert found.success, found.message
    return round(float(cost @ np.round(found.x)))
