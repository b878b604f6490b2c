"""The order of trials: blockers first, one and then two at a time; then remedies, within a budget.

`decide` is a whole decision; `go_on` says whether there is time for another one. What there was no
time for is counted and shown as not tried. Trials are remembered, so that what undoes a blocker
costs nothing again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from bigfleet.decision import Plan, Reason
from bigfleet.explanation.blockers import Blocker, candidates, removed, worth_trying
from bigfleet.explanation.changes import apply_all
from bigfleet.explanation.remedies import Case, Remedy, remedies
from bigfleet.explanation.situation import ComparedPlan, Decide, Effect, Situation, effect_of
from bigfleet.explanation.supply import SupplyCounts

MOST_REMEDIES: Final = 6
MOST_BLOCKERS: Final = 2


@dataclass(frozen=True)
class TriedRemedy:
    """A remedy and what the decision with it gives."""

    remedy: Remedy
    effect: Effect


@dataclass(frozen=True)
class Explanation:
    """Why one need is unmet and what would help, each tried."""

    met: bool
    """Nothing is missing beyond machines that are being drained for it."""
    now: Effect
    """What the decision gives it as things are."""
    blockers: tuple[Blocker, ...] = ()
    """One or two; none where more than two things stand in the way, or where time ran out."""
    found_in_time: bool = True
    """False where there was no time to try all single blockers and pairs."""
    holders: Mapping[int, int] = field(default_factory=dict)
    """Machines that suit the need and serve others: priority -> how many."""
    remedies: tuple[TriedRemedy, ...] = ()
    not_tried: int = 0
    """Remedies there was no time for, or beyond the most that are tried."""


class _OutOfTimeError(Exception):
    """There is no time for another decision."""


@dataclass
class _Trials:
    """Decisions on copies of one situation, each made once."""

    situation: Situation
    before: ComparedPlan
    members: Sequence[int]
    decide: Decide
    go_on: Callable[[], bool]
    plans: dict[object, Plan] = field(default_factory=dict)

    def without(self, blockers: Sequence[Blocker]) -> Plan:
        """The decision with these blockers removed."""
        return self._plan(
            frozenset(blockers), lambda: removed(self.situation, self.members, blockers)
        )

    def with_remedy(self, remedy: Remedy) -> Plan:
        """The decision with this remedy."""
        return self._plan(
            remedy.changes, lambda: apply_all(self.situation, self.members, remedy.changes)
        )

    def met(self, plan: Plan) -> bool:
        """Whether the subject is met."""
        return ComparedPlan(plan).met(self.members)

    def effect(self, plan: Plan) -> Effect:
        """What a decision gives the subject, and takes from others."""
        return effect_of(self.before, ComparedPlan(plan), self.members)

    def _plan(self, key: object, situation: Callable[[], Situation]) -> Plan:
        found = self.plans.get(key)
        if found is None:
            if not self.go_on():
                raise _OutOfTimeError
            found = self.plans[key] = self.decide(situation())
        return found


def explain(
    situation: Situation, plan: Plan, row: int, decide: Decide, go_on: Callable[[], bool]
) -> Explanation:
    """Why a row of a plan is unmet and what would help; the plan is the situation's decision.

    Trials add to the symbols of the situation: fork it where that must leave no trace.
    """
    v = plan.verdicts
    members = v.members[v.members_at[row] : v.members_at[row + 1]].tolist()
    before = ComparedPlan(plan)
    now = effect_of(before, before, members)
    if now.met:
        return Explanation(met=True, now=now)
    supply = SupplyCounts(situation)
    trials = _Trials(situation, before, members, decide, go_on)
    case = Case(situation, plan, [row], members, supply, now)
    holders = supply.holders(case.need, plan, [row])
    try:
        blockers = _blockers(case, trials, plan.reason(row))
        found_in_time = True
    except _OutOfTimeError:
        blockers, found_in_time = (), False
    tried, not_tried = _remedies(case, trials, blockers)
    return Explanation(False, now, blockers, found_in_time, holders, tried, not_tried)


def _blockers(case: Case, trials: _Trials, reason: Reason) -> tuple[Blocker, ...]:
    """The first single one that is enough, else the first pair, else none."""
    possible = candidates(case.situation, case.need, case.supply, reason)
    for size in range(1, MOST_BLOCKERS + 1):
        for some in combinations(possible, size):
            if not worth_trying(case.situation, case.members, some, case.supply):
                continue
            if trials.met(trials.without(some)):
                return some
    return ()


def _remedies(
    case: Case, trials: _Trials, blockers: tuple[Blocker, ...]
) -> tuple[tuple[TriedRemedy, ...], int]:
    lifted = trials.plans.get(frozenset(blockers)) if blockers else None
    possible = list(dict.fromkeys(remedies(case, blockers, lifted)))
    found: list[TriedRemedy] = []
    for place, remedy in enumerate(possible):
        try:
            if place == MOST_REMEDIES:
                raise _OutOfTimeError
            effect = trials.effect(trials.with_remedy(remedy))
        except _OutOfTimeError:
            return tuple(found), len(possible) - place
        if effect.met or effect.beyond(case.now):
            found.append(TriedRemedy(remedy, effect))
    return tuple(found), 0
