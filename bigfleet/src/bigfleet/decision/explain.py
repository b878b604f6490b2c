"""Why a need stays unmet, and what could have served it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bigfleet.decision.cycle import Cycle
from bigfleet.decision.kernels.explaining import held_back, subtract_coming, suiting
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
    coming = np.flatnonzero((c.wo.expected >= 0) | (c.wo.preempt >= 0))
    short = c.wo.left[: c.rows].copy()
    short[:, 0] -= c.wo.served[: c.rows]
    subtract_coming(ma, cl, ro, fa, wo, sc, coming, short)
    for i, r in enumerate(unmet):
        enough = bool((short[r, : c.ro.width[r]] <= 0).all())
        out[r] = _reason(c, policy, int(r), back[i], matching[r], enough)
    return out


def _reason(
    c: Cycle, policy: Policy, r: int, back: npt.NDArray[np.uint8], matching: I64, enough: bool
) -> Reason:
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
    if c.wo.victims[r] and not enough:
        return Reason.PREEMPTION_EXHAUSTED
    return Reason.PRIORITY_STARVED
