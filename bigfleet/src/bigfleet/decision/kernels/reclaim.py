"""Phase 3: bound machines without a claim are reclaimed, machines idle too long are released."""

from __future__ import annotations

import numpy as np

from bigfleet.decision.kernels.classify import owner_of
from bigfleet.decision.kernels.layout import (
    CONFIGURED,
    DO_NOT_DISRUPT,
    ENDING_SOON,
    I32,
    I64,
    IDLE,
    KEPT_OUT,
    LEAVING,
    U8,
    UNUSABLE,
    ClassArrays,
    Facts,
    Identities,
    MachineArrays,
    Rows,
    Work,
)
from bigfleet.decision.kernels.supply import satisfied
from bigfleet.jit.decorators import inner, jit


@inner
def _serving_rows(ma: MachineArrays, ro: Rows, wo: Work) -> U8:
    """Rows that are satisfied by Configured machines alone."""
    serving = np.ones(len(ro.position), np.uint8)
    for r in range(len(serving)):
        if not satisfied(ro, wo, r):
            serving[r] = 0
    for m in ma.order:
        r = wo.claim[m]
        if r >= 0 and not wo.held[m] and ma.state[m] != CONFIGURED:
            serving[r] = 0
            if ro.parent[r] >= 0:
                serving[ro.parent[r]] = 0
    return serving


@jit
def reclaim(
    ma: MachineArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, since: I64, now: int,
    hold: int,
) -> I32:  # fmt: skip
    """Configured machines to drain; ``since`` becomes the times since which they have no claim."""
    found = np.empty(len(ma.state), np.int32)
    size = 0
    serving = np.zeros(0, np.uint8)
    for m in ma.order:
        if ma.state[m] != CONFIGURED or wo.claim[m] >= 0:
            since[m] = 0
            continue
        if since[m] == 0:
            since[m] = now
        flags = ma.flags[m]
        if flags & (LEAVING | KEPT_OUT) or wo.preempt[m] >= 0:
            continue
        wanted = bool(flags & ENDING_SOON)
        cluster = ma.cluster[m]
        if not wanted and cluster >= 0 and fa.reported[cluster] and not flags & DO_NOT_DISRUPT:
            owner = owner_of(ids, ma.stamp[m])
            if flags & UNUSABLE and owner >= 0:
                if len(serving) == 0:
                    serving = _serving_rows(ma, ro, wo)
                wanted = bool(serving[owner])
            else:
                wanted = now - since[m] >= hold
        if wanted:
            found[size] = m
            size += 1
    return found[:size].copy()


@jit
def release(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, free: I32,
    now: int,
) -> I32:  # fmt: skip
    """Idle machines whose hold is over and that no row waits for; in any order.

    Who waits is a live, unmet row, and a cluster that has not said yet what it asks for.
    """
    found = np.empty(len(free), np.int32)
    size = 0
    for m in free:
        hold = cl.hold[ma.cls[m]]
        if ma.state[m] != IDLE or hold < 0 or ma.flags[m] & KEPT_OUT or wo.taken[m] >= 0:
            continue
        stamp = ma.stamp[m]
        owner = owner_of(ids, stamp)
        if owner >= 0 and not satisfied(ro, wo, owner):
            continue
        if stamp >= 0 and not fa.reported[ids.cluster[stamp]]:
            continue
        if now - ma.idle_since[m] >= hold:
            found[size] = m
            size += 1
    return found[:size].copy()


@jit
def tally(ma: MachineArrays, ro: Rows, wo: Work, rows: int) -> I64:
    """Per row: machines claimed, taken from Idle, taken from Speculative; sub-rows with theirs."""
    counts = np.zeros((rows, 3), np.int64)
    for m in ma.order:
        r = wo.claim[m]
        if r < 0:
            continue
        if ro.parent[r] >= 0:
            r = ro.parent[r]
        counts[r, 0] += 1
        if wo.taken[m] >= 0:
            counts[r, 1 if ma.state[m] == IDLE else 2] += 1
    return counts
