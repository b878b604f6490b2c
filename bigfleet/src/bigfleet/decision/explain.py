"""Why a need stays unmet, and what could have served it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bigfleet.decision.cycle import Cycle
from bigfleet.decision.kernels.explaining import give_of, held_back, suiting
from bigfleet.decision.kernels.layout import FAILED, I64
from bigfleet.decision.kinds import Reason
from bigfleet.decision.policy import Policy
from bigfleet.model.columns import MachineColumns


def matching_supply(c: Cycle, fleet: MachineColumns, unmet: I64) -> I64:
    """[row, state]: machines that could serve the row; only unsatisfied rows are filled."""
    out = np.zeros((c.rows, FAILED + 1), np.int64)
    if len(unmet):
        ma, cl, _, ro, fa, _, _, sc = c.refs
        suiting(ma, cl, ro, fa, sc, unmet, out)
    return out


def reasons(c: Cycle, policy: Policy, unmet: I64, matching: I64) -> npt.NDArray[np.int16]:
    """One reason per unsatisfied row; the first rule that fits."""
    out = np.zeros(c.rows, np.int16)
    if not len(unmet):
        return out
    ma, cl, _, ro, fa, ho, wo, sc = c.refs
    back = held_back(ma, cl, ro, fa, ho, wo, sc, unmet)
    for i, r in enumerate(unmet):
        out[r] = _reason(c, policy, int(r), back[i], matching[r])
    return out


def _reason(c: Cycle, policy: Policy, r: int, back: npt.NDArray[np.uint8], matching: I64) -> Reason:
    if c.ro.blocked[r]:
        return Reason.BOOTSTRAP_ERROR
    for held, reason in zip(back, (Reason.QUOTA, Reason.SPEND_LIMIT, Reason.STOCK_OUT), strict=True):
        if held:
            return reason
    if policy.paused:
        return Reason.PAUSED
    if c.ro.domain_key[r] >= 0 and (c.wo.domain[r] < 0 or not c.wo.satisfiable[r]):
        return Reason.TOPOLOGY_UNSATISFIABLE
    if not matching[1:FAILED].any():
        return Reason.NO_MATCHING_SUPPLY
    if c.wo.victims[r] and not _enough(c, r):
        return Reason.PREEMPTION_EXHAUSTED
    return Reason.PRIORITY_STARVED


def _enough(c: Cycle, r: int) -> bool:
    """What is on its way to the row and what it preempts cover what it lacks."""
    width = int(c.ro.width[r])
    left = c.wo.left[r, :width].copy()
    left[0] -= c.wo.served[r]
    coming = np.flatnonzero((c.wo.expected == r) | (c.wo.preempt == r))
    ma, cl, _, ro, fa, _, _, sc = c.refs
    give_of(ma, cl, ro, fa, sc, r, coming, left)
    return bool((left <= 0).all())
