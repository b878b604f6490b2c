"""One walk over the fleet: who counts for whom, what is free, what is on its way.

Everything later looks only at the lists made here. Machines are visited in the order of their
ids, so every list is in that order without sorting.
"""

from __future__ import annotations

import numpy as np

from bigfleet.decision.kernels.index_sort import sort_index
from bigfleet.decision.kernels.layout import (
    CONFIGURED,
    CONFIGURING,
    CREATING,
    DRAINING,
    FINAL,
    I32,
    I64,
    IDLE,
    LEAVING,
    MOST_MONEY,
    SPECULATIVE,
    UNUSABLE,
    ClassArrays,
    Identities,
    MachineArrays,
    Scratch,
)
from bigfleet.jit.decorators import inner, jit


@inner
def counting_cluster(ma: MachineArrays, ids: Identities, m: int) -> int:
    """The cluster a machine counts for, or -1."""
    if ma.flags[m] & (UNUSABLE | LEAVING):
        return -1
    state = ma.state[m]
    if state == CONFIGURED or state == CONFIGURING:
        return ma.cluster[m]
    if state == CREATING and ma.stamp[m] >= 0:
        return ids.cluster[ma.stamp[m]]
    return -1


@inner
def owner_of(ids: Identities, identity: int) -> int:
    """The live row a stamp is for: the same fingerprint first, then the order."""
    if identity < 0:
        return -1
    exact = ids.exact[identity]
    return exact if exact >= 0 else ids.first[ids.key[identity]]


@jit
def survey(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, rows: int, used: I64, spend: I64
) -> tuple[I64, I64]:
    """Counts: exact holdings by row; free machines by bucket."""
    classes = len(cl.price)
    exact = np.zeros(rows + 1, np.int64)
    free = np.zeros(2 * classes, np.int64)
    for m in ma.order:
        state = ma.state[m]
        if state == 0:
            continue
        c = ma.cls[m]
        if state != SPECULATIVE:
            used[cl.pool[c]] += 1
            if cl.elastic[c]:
                spend[0] += min(cl.price[c], MOST_MONEY - spend[0])
        usable = not (ma.flags[m] & UNUSABLE)
        if state == SPECULATIVE or state == IDLE:
            if usable:
                free[2 * c + (state == SPECULATIVE)] += 1
        elif ma.stamp[m] >= 0:
            row = ids.exact[ma.stamp[m]]
            if row >= 0 and counting_cluster(ma, ids, m) == ids.cluster[ma.stamp[m]]:
                exact[row] += 1
    return exact, free


@jit
def starts(counts: I64) -> I64:
    """Where each group's list starts, from the groups' sizes; one more entry than groups."""
    out = np.zeros(len(counts) + 1, np.int64)
    for i in range(len(counts)):
        out[i + 1] = out[i] + counts[i]
    return out


@jit
def gather(
    ma: MachineArrays, ids: Identities, exact_at: I64, bucket_at: I64
) -> tuple[I32, I32, I32, I32, I32, I32]:
    """The lists themselves: exact holdings, buckets, and what is rare, still ungrouped."""
    exact = np.empty(exact_at[-1], np.int32)
    bucket = np.empty(bucket_at[-1], np.int32)
    exact_next = exact_at.copy()
    bucket_next = bucket_at.copy()
    size = 0
    for m in ma.order:
        if ma.state[m] != 0 and (ma.stamp[m] >= 0 or ma.leaving_for[m] >= 0):
            size += 1
    key = np.empty(size, np.int32)
    idle = np.empty(size, np.int32)
    coming = np.empty(size, np.int32)
    leaving = np.empty(size, np.int32)
    keys = idles = comings = leavings = 0
    for m in ma.order:
        state = ma.state[m]
        if state == 0 or ma.flags[m] & UNUSABLE:
            continue
        stamp = ma.stamp[m]
        if state == SPECULATIVE or state == IDLE:
            at = 2 * ma.cls[m] + (state == SPECULATIVE)
            bucket[bucket_next[at]] = m
            bucket_next[at] += 1
            if state == IDLE and stamp >= 0 and ids.first[ids.key[stamp]] >= 0:
                idle[idles] = m
                idles += 1
        elif ma.flags[m] & LEAVING:
            if ma.leaving_for[m] >= 0 and (state == CONFIGURED or state == DRAINING):
                coming[comings] = m
                comings += 1
            if state == CONFIGURED and stamp >= 0 and not ma.flags[m] & FINAL:
                leaving[leavings] = m
                leavings += 1
        elif stamp >= 0 and counting_cluster(ma, ids, m) == ids.cluster[stamp]:
            row = ids.exact[stamp]
            if row >= 0:
                exact[exact_next[row]] = m
                exact_next[row] += 1
            elif ids.first[ids.key[stamp]] >= 0:
                key[keys] = m
                keys += 1
    return exact, bucket, key[:keys], idle[:idles], coming[:comings], leaving[:leavings]


@inner
def fill_loose(
    ma: MachineArrays, ids: Identities, claim: I32, wanted: I64, at: I64, found: I32
) -> None:
    """Counting machines that no row has claimed yet, by cluster, for clusters that want any."""
    for i in range(len(at)):
        at[i] = 0
    for m in ma.order:
        if ma.state[m] != 0 and claim[m] < 0:
            cluster = counting_cluster(ma, ids, m)
            if cluster >= 0 and wanted[cluster]:
                at[cluster + 1] += 1
    for i in range(1, len(at)):
        at[i] += at[i - 1]
    # The starts serve as write positions; afterwards each is one group too far.
    for m in ma.order:
        if ma.state[m] != 0 and claim[m] < 0:
            cluster = counting_cluster(ma, ids, m)
            if cluster >= 0 and wanted[cluster]:
                found[at[cluster]] = m
                at[cluster] += 1
    for i in range(len(at) - 1, 0, -1):
        at[i] = at[i - 1]
    at[0] = 0


@jit
def order_idle_buckets(
    ma: MachineArrays, ids: Identities, sc: Scratch, bucket: I32, bucket_at: I64
) -> None:
    """Idle machines by reclamation penalty, then id: a valuable one is spent last."""
    for c in range((len(bucket_at) - 1) // 2):
        lo, hi = bucket_at[2 * c], bucket_at[2 * c + 1]
        mixed = False
        for i in range(lo, hi):
            stamp = ma.stamp[bucket[i]]
            if stamp >= 0 and ids.reclamation[stamp] > 1:
                mixed = True
                break
        if not mixed:
            continue
        for i in range(lo, hi):
            sc.k1[i - lo] = penalty_rank(ma, ids, bucket[i])
            sc.k2[i - lo] = ma.rank[bucket[i]]
            sc.k3[i - lo] = bucket[i]
        sort_index(sc.k1, sc.k2, sc.k3, sc.sorted, sc.spare, hi - lo)
        for i in range(lo, hi):
            bucket[i] = sc.k3[sc.sorted[i - lo]]


@inner
def penalty_rank(ma: MachineArrays, ids: Identities, m: int) -> int:
    """Absent and zero are one value; an unstamped machine has none to protect."""
    stamp = ma.stamp[m]
    return 1 if stamp < 0 else max(1, ids.reclamation[stamp])


@jit
def in_id_order(ma: MachineArrays, size: int) -> I32:
    """All free machines in the order of their ids."""
    found = np.empty(size, np.int32)
    count = 0
    for m in ma.order:
        if (ma.state[m] == IDLE or ma.state[m] == SPECULATIVE) and not ma.flags[m] & UNUSABLE:
            found[count] = m
            count += 1
    return found


@jit
def by_domain(ma: MachineArrays, free: I32, column: int, base: int, at: I64, out: I32) -> None:
    """Free machines by their value of a topology column; without one they are in no list."""
    values = ma.columns[column]
    at[:] = 0
    for m in free:
        if values[m] >= 0:
            at[values[m] + 1] += 1
    at[0] = base
    for i in range(1, len(at)):
        at[i] += at[i - 1]
    place = at.copy()
    for m in free:
        if values[m] >= 0:
            out[place[values[m]]] = m
            place[values[m]] += 1
