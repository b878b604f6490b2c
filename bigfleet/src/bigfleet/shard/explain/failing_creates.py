"""Needs that stay unserved, because the Creates they wait for fail: a plan as it is to be shown.

The engine counts what it orders, and cannot know that the order comes to nothing. So the ledger,
the views and the verdicts are given a plan of which two things are put right, while the decision
and its carry stay what they are:

- a row counts as met only without the machines whose Creates fail again and again, or whose
  provider gets no Creates now;
- a row that is unmet while Creates of what would serve it fail has that for a reason, not the
  stock-out, the starvation or the lack of machines that the engine sees from where it stands;
  but only where the slots of what fails would be enough for it, or where nothing else matches: one
  slot whose Creates fail does not explain why a fleet that is full is full.

What would serve a row is told by its requirements and its unit; labels with a column of their own
are left to the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from bigfleet.decision import ActionKind, Plan, Reason
from bigfleet.decision.matcher import Matcher
from bigfleet.decision.plan import VerdictColumns
from bigfleet.model import MachineState
from bigfleet.model.columns import Demand, MachineColumns, Offering
from bigfleet.model.match_set import ClusterTerms, MatchSet
from bigfleet.shard.explain.deficits import Deficits
from bigfleet.shard.providers.create_failures import CreateFailure
from bigfleet.shard.providers.create_streaks import Run, Trouble

B = npt.NDArray[np.bool_]
I64 = npt.NDArray[np.int64]
N = TypeVar("N", np.int64, np.float64)
S = MachineState
F = CreateFailure

_FIRST: Final = (F.QUOTA, F.BAD_REQUEST, F.OUT_OF_CAPACITY, F.THROTTLED, F.UNAVAILABLE)
"""Which cause is told where several hold: what a person can fix comes first."""
_SEEN_FROM_AFAR: Final = (
    Reason.NONE,
    Reason.STOCK_OUT,
    Reason.PRIORITY_STARVED,
    Reason.NO_MATCHING_SUPPLY,
    Reason.TOPOLOGY_UNSATISFIABLE,
    Reason.PREEMPTION_EXHAUSTED,
)
"""Reasons of the engine that failing Creates can hide behind."""
_SLOTS: Final = (S.SPECULATIVE, S.CREATING, S.FAILED)
_STATES: Final = max(S) + 1
_MILLI: Final = 1000
_NONE: Final = 2**62


@dataclass(frozen=True)
class ShownPlan:
    """A plan as it is shown."""

    plan: Plan
    cause: I64
    """Per row: which of the runs leaves it unmet; -1 for none."""
    runs: tuple[Run, ...] = ()
    vain: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    """Machines that rows claim and that are not to be had."""
    failing: frozenset[Offering] = frozenset()
    """Offerings whose Creates fail."""

    @classmethod
    def as_decided(cls, plan: Plan) -> ShownPlan:
        """The plan with nothing put right."""
        return cls(plan, np.full(len(plan.verdicts), -1, np.int64))

    def run(self, row: int) -> Run | None:
        """The failures that leave a row unmet."""
        place = int(self.cause[row])
        return None if place < 0 else self.runs[place]


class FailingCreates:
    """Finds them, cycle after cycle; keeps what two cycles have in common."""

    def __init__(self) -> None:
        self._matcher = Matcher()
        self._lacking = Deficits()

    def shown(self, plan: Plan, trouble: Trouble, row_of: Callable[[str], int]) -> ShownPlan:
        """The plan as it is to be shown; `row_of` knows machines by their ids."""
        if not trouble:
            return ShownPlan.as_decided(plan)
        self._matcher.forget_unused()
        runs, of_class = _runs_of_classes(plan.fleet, trouble)
        vain = _in_vain(plan, trouble, row_of)
        v, cause = self._without(plan, vain, of_class)
        counts = _counts(plan.fleet)
        fails = np.where(counts[:, _SLOTS].any(axis=1), of_class, -1)
        unmet = np.flatnonzero(~v.satisfied & np.isin(v.reason, _SEEN_FROM_AFAR))
        slots = np.where(fails >= 0, counts[:, _SLOTS].sum(axis=1), 0)
        milli = plan.fleet.classes.whole * float(_MILLI) + plan.fleet.classes.milli
        for rows, suits, which in self._suiting(plan, unmet):
            new = ~v.matching[rows].any(axis=1)
            v.matching[rows[new]] = (suits @ counts)[which[new]]
            short = v.short[rows] * v.scale.astype(np.float64)
            given, short = _same_width((suits * slots) @ milli, short)
            enough = (given[which] >= short).all(axis=1)
            explained = enough | ~np.delete(v.matching[rows], _SLOTS, axis=1).any(axis=1)
            new = (cause[rows] < 0) & explained
            cause[rows[new]] = _first(np.where(suits, fails, -1))[which[new]]
        caused = np.flatnonzero(cause >= 0)
        quota = np.array([run.cause is F.QUOTA for run in runs], np.bool_)
        v.reason[caused] = np.where(quota[cause[caused]], Reason.QUOTA, Reason.STOCK_OUT)
        failing = frozenset(o for o in plan.fleet.classes.offerings if trouble.of(o) is not None)
        return ShownPlan(replace(plan, verdicts=v), cause, runs, vain, failing)

    def _without(self, plan: Plan, vain: I64, of_class: I64) -> tuple[VerdictColumns, I64]:
        """Verdicts to write in, in which these machines are nothing; per row what fails, or -1."""
        v = plan.verdicts
        satisfied, deficit, short = v.satisfied.copy(), v.deficit.copy(), v.short.copy()
        rows, missing = self._lacking.without(plan, vain)
        short[rows] += missing - deficit[rows]
        satisfied[rows], deficit[rows] = False, missing
        first = np.full(len(v), _NONE, np.int64)
        np.minimum.at(first, plan.claimed[vain], of_class[plan.fleet.cls[vain]])
        cause = np.full(len(v), -1, np.int64)
        # A row that is short of more than these machines is looked at like any other.
        cause[rows] = np.where((v.short[rows] > 0).any(axis=1), -1, first[rows])
        reason, matching = v.reason.copy(), v.matching.copy()
        shown = replace(
            v, satisfied=satisfied, deficit=deficit, short=short, reason=reason, matching=matching
        )
        return shown, cause

    def _suiting(self, plan: Plan, rows: I64) -> Iterator[tuple[I64, B, I64]]:
        """Rows of one profile, classes that would serve a size of unit, each row's size."""
        demand, fleet = plan.demand, plan.fleet
        stands = plan.verdicts.members[plan.verdicts.members_at[rows]]
        some = (demand.aggregate[stands] > 0) | (demand.aggregate_milli[stands] > 0)
        unit = demand.unit[stands] * _MILLI + demand.unit_milli[stands]
        gives, asks = _same_width(
            fleet.classes.whole * _MILLI + fleet.classes.milli, np.maximum(unit, some)
        )
        terms, number = _terms(demand)
        kind = demand.profile[stands] * len(terms) + number[stands]
        order = np.argsort(kind, kind="stable")
        for mine in np.split(order, np.flatnonzero(np.diff(kind[order])) + 1):
            if not len(mine):
                continue
            profile, stated = divmod(int(kind[mine[0]]), len(terms))
            wanted = demand.symbols.profiles[profile].without_same()
            requirements = (r for r in wanted.requirements if r.key not in fleet.topology)
            match_set = MatchSet.of_new(requirements, wanted, terms[stated])
            matches = np.flatnonzero(self._matcher.classes(match_set, fleet.classes))
            sizes, which = np.unique(asks[mine], axis=0, return_inverse=True)
            suits = np.zeros((len(sizes), len(gives)), np.bool_)
            suits[:, matches] = (gives[matches] >= sizes[:, None]).all(axis=2)
            yield rows[mine], suits, which.reshape(-1)


def _terms(demand: Demand) -> tuple[list[ClusterTerms], I64]:
    """What clusters state, each once, and per row which of it holds."""
    numbers = {ClusterTerms(): 0}
    of_cluster = np.zeros(max(1, len(demand.symbols.clusters)), np.int64)
    for cluster, fact in demand.facts.items():
        place = demand.symbols.clusters.find(cluster)
        if place >= 0:
            of_cluster[place] = numbers.setdefault(ClusterTerms.of(fact), len(numbers))
    return list(numbers), of_cluster[demand.symbols.identity_column("cluster")[demand.identity]]


def _first(places: I64) -> I64:
    """The smallest along the last axis that is not -1; -1 where all are."""
    found = np.where(places < 0, _NONE, places).min(axis=-1, initial=_NONE)
    return np.where(found == _NONE, -1, found)


def _runs_of_classes(fleet: MachineColumns, trouble: Trouble) -> tuple[tuple[Run, ...], I64]:
    """What fails, the first to be told first; per class which of it, -1 for nothing."""
    found = [
        (_FIRST.index(run.cause), offering, number, run)
        for number, offering in enumerate(fleet.classes.offerings)
        if (run := trouble.of(offering)) is not None
    ]
    found.sort(key=lambda one: one[:2])
    of_offering = np.full(len(fleet.classes.offerings), -1, np.int64)
    for place, (_, _, number, _) in enumerate(found):
        of_offering[number] = place
    return tuple(run for _, _, _, run in found), of_offering[fleet.classes.offering]


def _in_vain(plan: Plan, trouble: Trouble, row_of: Callable[[str], int]) -> I64:
    """Machines that rows claim and that are not to be had."""
    fleet, actions = plan.fleet, plan.actions
    table = fleet.classes
    vain = np.array([trouble.in_vain(offering) for offering in table.offerings], np.bool_)
    ordered = actions.machine[actions.kind == ActionKind.PROVISION].astype(np.int64)
    ordered = ordered[vain[table.offering[fleet.cls[ordered]]]] if len(vain) else ordered[:0]
    known = ((row_of(name), name) for name in sorted(trouble.retries))
    begun = np.array(
        [row for row, name in known if 0 <= row < len(fleet) and fleet.ids[row] == name], np.int64
    )
    begun = begun[(fleet.state[begun] == S.CREATING) & (plan.claimed[begun] >= 0)]
    return np.union1d(ordered, begun)


def _counts(fleet: MachineColumns) -> I64:
    """[class, state]: machines."""
    there = fleet.state > 0
    places = fleet.cls[there].astype(np.int64) * _STATES + fleet.state[there]
    size = len(fleet.classes)
    return np.bincount(places, minlength=size * _STATES).reshape(size, _STATES)


def _same_width(
    left: npt.NDArray[N], right: npt.NDArray[N]
) -> tuple[npt.NDArray[N], npt.NDArray[N]]:
    """Columns over resources; an amount that knows fewer of them has none of the others."""
    width = max(left.shape[1], right.shape[1])

    def widened(amounts: npt.NDArray[N]) -> npt.NDArray[N]:
        return np.pad(amounts, ((0, 0), (0, width - amounts.shape[1])))

    return widened(left), widened(right)
