"""What rows of a plan lack when some of the machines they claim count as nothing.

The engine counts all of them, and its deficit is the least a row lacks. Everything is in the
engine's counted units, and only the rows that are asked about are looked at.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bigfleet.decision import Plan
from bigfleet.decision.tables import ScaledAmounts, Tables

I64 = npt.NDArray[np.int64]
Supplies = tuple[I64, I64, I64]
"""Places in the rows, what one machine gives there, and how many such machines there are."""


class Deficits:
    """Keeps what the amounts of one cycle have in common with those of the next."""

    def __init__(self) -> None:
        self._tables = Tables()

    def without(self, plan: Plan, machines: I64) -> tuple[I64, I64]:
        """The rows that lack more without these machines, and what: [row, resource]."""
        rows: I64 = np.unique(plan.claimed[machines]).astype(np.int64)
        rows = rows[rows >= 0]
        if not len(rows):
            return rows, plan.verdicts.deficit[rows]
        amounts = self._amounts(plan)
        claimed = np.flatnonzero(np.isin(plan.claimed, rows))
        gone = np.isin(claimed, machines)
        known = plan.verdicts.deficit[rows]
        most = known.copy()
        place, gives, count = _supplies(plan, amounts, rows, claimed[gone])
        np.add.at(most, place, gives * count[:, None])
        left = _left(plan, amounts, rows, _supplies(plan, amounts, rows, claimed[~gone]))
        missing = np.maximum(np.minimum(left, most), known)
        more = (missing > known).any(axis=1)
        return rows[more], missing[more]

    def _amounts(self, plan: Plan) -> ScaledAmounts:
        made = self._tables.amounts(plan.fleet, plan.demand, self._tables.clusters(plan.demand))
        # Resources that came up since the plan was made are not in it.
        width = plan.verdicts.deficit.shape[1]
        return ScaledAmounts(
            made.scale[:width],
            made.aggregate[:, :width],
            made.unit[:, :width],
            made.offers[:, :width],
            made.overhead[:, :width],
        )


def _supplies(plan: Plan, amounts: ScaledAmounts, rows: I64, machines: I64) -> Supplies:
    pairs = np.stack([np.searchsorted(rows, plan.claimed[machines]), plan.fleet.cls[machines]])
    (place, cls), count = np.unique(pairs, axis=1, return_counts=True)
    stands = plan.verdicts.members[plan.verdicts.members_at[rows[place]]]
    cluster = plan.demand.symbols.identity_column("cluster")[plan.demand.identity[stands]]
    return place, np.maximum(amounts.offers[cls] - amounts.overhead[cluster], 0), count


def _left(plan: Plan, amounts: ScaledAmounts, rows: I64, supplies: Supplies) -> I64:
    """What the supplies leave of the rows; of uniform ones whole units."""
    aggregate, unit = _wanted(plan, amounts, rows)
    place, gives, count = supplies
    times = np.max(aggregate // np.maximum(unit, 1), axis=1, where=unit > 0, initial=0)
    uniform = (times >= 1) & (aggregate == times[:, None] * unit).all(axis=1)
    often = np.iinfo(np.int64).max
    hold = np.min(gives // np.maximum(unit[place], 1), axis=1, where=unit[place] > 0, initial=often)
    np.subtract.at(times, place, np.where(uniform[place], hold, 0) * count)
    left = aggregate.copy()
    np.subtract.at(left, place, gives * count[:, None])
    return np.maximum(np.where(uniform[:, None], times[:, None] * unit, left), 0)


def _wanted(plan: Plan, amounts: ScaledAmounts, rows: I64) -> tuple[I64, I64]:
    """Aggregate and unit of rows; a folded one asks for its members, one after the other."""
    v = plan.verdicts
    first = v.members[v.members_at[rows]]
    folded = v.need[rows] < 0
    times = np.where(folded, np.diff(v.members_at)[rows], 1)
    one = amounts.aggregate[first]
    return one * times[:, None], np.where(folded[:, None], one, amounts.unit[first])
