"""What one decision is made on, and what a decision made of one need.

A need counts as met where it lacks nothing beyond machines that are being drained for it. One row
of a plan may stand for several rows of the demand (gangs that fold): all of them are the subject.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bigfleet.decision import ActionKind, Carry, Plan, Policy
from bigfleet.model import Need
from bigfleet.model.columns import Demand, MachineColumns

I64 = npt.NDArray[np.int64]
Decide = Callable[["Situation"], Plan]


@dataclass(frozen=True)
class Situation:
    """All arguments of one decision."""

    fleet: MachineColumns
    demand: Demand
    policy: Policy
    carry: Carry
    now: int

    def fork(self) -> Situation:
        """The same with symbols of its own, so that trials leave no trace.

        To be called where the symbols are written, so that they do not change meanwhile.
        """
        symbols = self.demand.symbols.fork()
        demand = replace(self.demand, symbols=symbols)
        if "order" in self.demand.__dict__:
            demand.__dict__["order"] = self.demand.order
        return replace(self, fleet=replace(self.fleet, symbols=symbols), demand=demand)

    def with_needs(self, changed: Mapping[int, Need]) -> Situation:
        """Some rows of the demand ask for something else."""
        return replace(self, demand=self.demand.with_needs(changed))


@dataclass(frozen=True)
class Effect:
    """What a decision gives to the subject, and what it takes from other needs."""

    met: bool
    got: Mapping[str, int]
    """What it has or will have, in milli-units by resource."""
    asked: Mapping[str, int]
    become_unmet: Mapping[int, int]
    """Other needs that were met before and are not any more: priority -> how many."""
    get_less: Mapping[int, int]
    """Other needs that were unmet before and lack more now: priority -> how many."""
    preempted: int
    """Machines that are drained for the subject."""

    @property
    def takes(self) -> bool:
        """Whether other needs are worse off."""
        return bool(self.become_unmet or self.get_less)

    def beyond(self, other: Effect) -> bool:
        """Whether the subject lacks less of something, and more of nothing."""
        mine, theirs = self.shortfall, other.shortfall
        names = mine.keys() | theirs.keys()
        return mine != theirs and all(mine.get(n, 0) <= theirs.get(n, 0) for n in names)

    @property
    def shortfall(self) -> dict[str, int]:
        """What is missing, by resource."""
        found = {name: asked - self.got.get(name, 0) for name, asked in self.asked.items()}
        return {name: amount for name, amount in found.items() if amount > 0}


@dataclass(frozen=True)
class ComparedPlan:
    """A plan as it is compared with another one, need by need."""

    plan: Plan

    @cached_property
    def row_of(self) -> I64:
        """Per row of the demand: the row of the plan that stands for it."""
        v = self.plan.verdicts
        rows = np.full(len(self.plan.demand), -1, np.int64)
        rows[v.members] = np.repeat(np.arange(len(v)), np.diff(v.members_at))
        return rows

    @cached_property
    def short(self) -> npt.NDArray[np.bool_]:
        """Per row of the plan: it lacks more than what is being drained for it."""
        return np.asarray((self.plan.verdicts.short > 0).any(axis=1), np.bool_)

    def rows(self, members: Sequence[int]) -> list[int]:
        """The rows of the plan that stand for these rows of the demand."""
        return sorted(set(self.row_of[np.asarray(members)].tolist()))

    def met(self, members: Sequence[int]) -> bool:
        """Whether none of them is short of anything."""
        return not self.short[self.rows(members)].any()


def effect_of(before: ComparedPlan, after: ComparedPlan, members: Sequence[int]) -> Effect:
    """What changed for the subject and for the others between two decisions."""
    plan, rows = after.plan, after.rows(members)
    asked: Counter[str] = Counter()
    shortfall: Counter[str] = Counter()
    v = plan.verdicts
    for row in rows:
        for member in v.members[v.members_at[row] : v.members_at[row + 1]].tolist():
            asked.update(plan.demand.need(member).aggregate)
        shortfall.update(plan.short(row))
    unmet, less = _worse_off(before, after, members)
    drained = (plan.actions.kind == ActionKind.PREEMPT) & np.isin(plan.actions.row, rows)
    return Effect(
        met=after.met(members),
        got={name: max(0, amount - shortfall[name]) for name, amount in asked.items()},
        asked=dict(asked),
        become_unmet=unmet,
        get_less=less,
        preempted=int(drained.sum()),
    )


def _worse_off(
    before: ComparedPlan, after: ComparedPlan, members: Sequence[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Other needs that become unmet, and unmet ones that lack more: by priority."""
    others = np.ones(len(before.row_of), np.bool_)
    others[np.asarray(members)] = False
    was, now = before.short[before.row_of], after.short[after.row_of]
    unmet = np.flatnonzero(others & ~was & now)
    both = np.flatnonzero(others & was & now)
    less = [i for i in both.tolist() if _lacks_more(before, after, i)]
    return _by_priority(after.plan, unmet.tolist()), _by_priority(after.plan, less)


def _lacks_more(before: ComparedPlan, after: ComparedPlan, member: int) -> bool:
    old, new = int(before.row_of[member]), int(after.row_of[member])
    if _members(before.plan, old) != _members(after.plan, new):
        # Folded with others now: amounts of the two rows cannot be compared.
        return False
    width = min(before.plan.verdicts.short.shape[1], after.plan.verdicts.short.shape[1])
    mine = after.plan.verdicts.short[new] * after.plan.verdicts.scale
    theirs = before.plan.verdicts.short[old] * before.plan.verdicts.scale
    return bool((mine[:width] > theirs[:width]).any() or (mine[width:] > 0).any())


def _members(plan: Plan, row: int) -> tuple[int, ...]:
    v = plan.verdicts
    return tuple(sorted(v.members[v.members_at[row] : v.members_at[row + 1]].tolist()))


def _by_priority(plan: Plan, rows: Sequence[int]) -> dict[int, int]:
    profiles, numbers = plan.demand.symbols.profiles, plan.demand.profile
    counted = Counter(profiles[int(numbers[row])].priority for row in rows)
    return dict(sorted(counted.items()))
