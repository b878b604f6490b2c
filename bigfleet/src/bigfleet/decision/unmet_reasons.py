"""Why a need stays unmet, and what could have served it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bigfleet.decision.cycle_arrays import CycleArrays
from bigfleet.decision.interning import distinct
from bigfleet.decision.kernels.layout import FAILED, I64, SPECULATIVE
from bigfleet.decision.kernels.unmet_counts import held_back, subtract_coming, suiting
from bigfleet.decision.kinds import Reason
from bigfleet.decision.policy import Policy
from bigfleet.decision.row_columns import mask_columns
from bigfleet.model.columns import MachineColumns


def matching_supply(c: CycleArrays, fleet: MachineColumns, unmet: I64) -> I64:
    """[row, state]: machines that could serve the row; only unsatisfied rows are filled."""
    out = np.zeros((c.rows, FAILED + 1), np.int64)
    if len(unmet):
        ma, cl, _, ro, fa, _, _, sc = c.refs
        masks = mask_columns(c.ro.masks, c.ro.mask, unmet)
        kind = distinct(masks)[1] if masks else np.zeros(len(unmet), np.int64)
        order = np.argsort(kind, kind="stable")
        suiting(ma, cl, ro, fa, sc, unmet[order], kind[order], out)
    return out


def still_short(c: CycleArrays, unmet: I64) -> I64:
    """[row, place]: what rows lack beyond the machines that are being drained for them."""
    ma, cl, _, ro, fa, _, wo, sc = c.refs
    out = np.zeros((c.rows, c.wo.left.shape[1]), np.int64)
    if len(unmet):
        coming = np.flatnonzero((c.wo.expected >= 0) | (c.wo.preempt >= 0))
        short = c.wo.left[: c.rows].copy()
        short[:, 0] -= c.wo.served[: c.rows]
        subtract_coming(ma, cl, ro, fa, wo, sc, coming, short)
        inside = np.arange(short.shape[1]) < c.ro.width[unmet, None]
        out[unmet] = np.where(inside, np.maximum(short[unmet], 0), 0)
    return out


def reasons(
    c: CycleArrays, policy: Policy, unmet: I64, matching: I64, short: I64
) -> npt.NDArray[np.int16]:
    """One reason per unsatisfied row; the first rule that fits.

    A limit is the reason only where lifting it would be enough, or where nothing but slots behind
    limits matches: one slot out of stock does not explain why a fleet that is full is full.
    """
    out = np.zeros(c.rows, np.int16)
    if not len(unmet):
        return out
    ma, cl, _, ro, fa, ho, wo, sc = c.refs
    back = held_back(ma, cl, ro, fa, ho, wo, sc, unmet, short)
    limits = (Reason.QUOTA, Reason.SPEND_LIMIT, Reason.STOCK_OUT)
    gang = c.ro.domain_key[unmet] >= 0
    homeless = gang & ((c.wo.domain[unmet] < 0) | (c.wo.satisfiable[unmet] == 0))
    slots_only = ~np.delete(matching[unmet, :FAILED], SPECULATIVE, axis=1).any(axis=1)
    nothing = slots_only & (matching[unmet, SPECULATIVE] == 0)
    rules = (
        (c.ro.blocked[unmet] > 0, Reason.BOOTSTRAP_ERROR),
        *((back[:, i] == 2, reason) for i, reason in enumerate(limits)),
        *(((back[:, i] > 0) & (back[:, 3] == 2), reason) for i, reason in enumerate(limits)),
        (np.full(len(unmet), policy.paused), Reason.PAUSED),
        (homeless, Reason.TOPOLOGY_UNSATISFIABLE),
        (nothing, Reason.NO_MATCHING_SUPPLY),
        *((slots_only & (back[:, i] > 0), reason) for i, reason in enumerate(limits)),
        ((c.wo.victims[unmet] > 0) & (short[unmet] > 0).any(axis=1), Reason.PREEMPTION_EXHAUSTED),
    )
    out[unmet] = np.select(
        [rule for rule, _ in rules], [int(reason) for _, reason in rules], Reason.PRIORITY_STARVED
    )
    return out
