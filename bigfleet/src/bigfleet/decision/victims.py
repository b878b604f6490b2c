"""Who holds a machine, as phase 2 sees it: priority and what its penalties are worth."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from bigfleet.decision.cycle_arrays import CycleArrays
from bigfleet.decision.interning import distinct
from bigfleet.decision.kernels.layout import I32, I64, Victims
from bigfleet.decision.kernels.preempt import victim_lists
from bigfleet.decision.kernels.references import refer
from bigfleet.decision.policy import Policy
from bigfleet.model import PenaltyBucket
from bigfleet.model.columns import MachineColumns

_LEAST_DOLLARS = 0.01


def victims_of(c: CycleArrays, fleet: MachineColumns, policy: Policy) -> Victims:
    """Number the holders' profiles; machines of one class and holder profile score alike."""
    priority = np.concatenate([c.ro.priority, c.ids.priority])
    interruption = np.concatenate([c.ro.interruption, c.ids.interruption])
    reclamation = np.concatenate([c.ro.reclamation, c.ids.reclamation])
    first, number = distinct([priority, interruption, reclamation])
    numbers: I32 = number.astype(np.int32)
    worth = np.array(
        [0.0 if b.pinned else 1.0 / max(b.dollars, _LEAST_DOLLARS) for b in PenaltyBucket]
    )
    ma, cl, ids, ro, fa, _, wo, _ = c.refs
    of_row, of_identity = numbers[: len(c.ro.priority)], numbers[len(c.ro.priority) :]
    excess_at, excess, victim_at, victim = victim_lists(
        ma, cl, ids, ro, fa, wo, of_row, of_identity, len(first)
    )
    weights = policy.weights
    filled = np.flatnonzero(np.diff(victim_at) > 0)
    return Victims(
        excess_at=excess_at,
        excess=excess,
        excess_next=excess_at[:-1].copy(),
        victim_at=victim_at,
        victim=victim,
        victim_next=victim_at[:-1].copy(),
        bucket_at=np.searchsorted(filled // len(first), np.arange(len(c.cl.price) + 1)),
        bucket=filled,
        priority=priority[first],
        worth=np.column_stack([worth[interruption[first]], worth[reclamation[first]]]),
        weights=np.array(
            [weights.priority, weights.drain, weights.interruption, weights.reclamation]
        ),
        budget=_budget(fleet, policy, len(c.fa.reported)),
    )


@lru_cache
def no_victims() -> Any:
    """As kernels take it: for the phases that preempt no machine."""
    n32, n64 = np.zeros(1, np.int32), np.zeros(1, np.int64)
    worth, weights = np.zeros((1, 2)), np.zeros(4)
    return refer(Victims(n64, n32, n64, n64, n32, n64, n64, n64, n64, worth, weights, n64))


def _budget(fleet: MachineColumns, policy: Policy, clusters: int) -> I64:
    budget = np.full(clusters, -1, np.int64)
    if policy.reclaim_budget is not None:
        for number, cluster in enumerate(fleet.symbols.clusters):
            budget[number] = max(0, policy.reclaim_budget.get(cluster, 0))
    return budget
