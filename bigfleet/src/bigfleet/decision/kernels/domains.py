"""Free capacity per domain for gangs; what might yield there is in `preemptible_sums`.

Free capacity of a topology column is kept as sums per domain for each *type* of gang (same
requirements and unit), brought up to date from the log of takes when a gang of that type looks.
"""

from __future__ import annotations

from bigfleet.decision.kernels.amounts import domain_of, fits
from bigfleet.decision.kernels.classify import owner_of
from bigfleet.decision.kernels.layout import (
    I64,
    IDLE,
    SPECULATIVE,
    ClassArrays,
    Facts,
    Holdings,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.supply import available, may_create, suits
from bigfleet.jit.decorators import inner


@inner
def _owned(ids: Identities, ma: MachineArrays, m: int) -> bool:
    """A stamped Idle machine of a live row is looked at by itself, not as part of a sum."""
    return bool(ma.state[m] == IDLE and owner_of(ids, ma.stamp[m]) >= 0)


@inner
def _add(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, sc: Scratch,
    r: int, slot: int, m: int, sign: int,
) -> None:  # fmt: skip
    c = ma.cls[m]
    if _owned(ids, ma, m) or not suits(cl, ro, fa, sc, r, c) or not fits(ma, ro, fa, r, m):
        return
    if ma.state[m] == SPECULATIVE and cl.cooling[c]:
        return
    domain = domain_of(ma, fa, ro.domain_key[r], m)
    if domain >= 0:
        for j in range(ro.width[r]):
            sc.sums[slot, domain, j] += sign * sc.give[c, j]
        sc.sum_count[slot, domain] += sign


@inner
def _clear(sums: I64, count: I64, slot: int) -> None:
    for d in range(sums.shape[1]):
        count[slot, d] = 0
        for j in range(sums.shape[2]):
            sums[slot, d, j] = 0


@inner
def _list_domains(sc: Scratch, slot: int) -> None:
    """Domains with anything free: whatever is taken or given back later, there are no others."""
    size = 0
    for d in range(sc.sum_count.shape[1]):
        if sc.sum_count[slot, d] > 0:
            sc.slot_domain[slot, size] = d
            size += 1
    sc.slot_size[slot] = size


@inner
def free_sums(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int,
) -> int:  # fmt: skip
    """The slot with the free capacity per domain for this type of gang, as of now."""
    kind = ro.gang_type[r]
    slot = sc.sum_slot[kind]
    if slot < 0:
        slot = sc.clock[1] % len(sc.slot_type)
        sc.clock[1] += 1
        if sc.slot_type[slot] >= 0:
            sc.sum_slot[sc.slot_type[slot]] = -1
        sc.slot_type[slot] = kind
        sc.sum_slot[kind] = slot
        _clear(sc.sums, sc.sum_count, slot)
        for i in range(fa.match_start[ro.match[r]], fa.match_start[ro.match[r] + 1]):
            c = fa.match_class[i]
            for at in range(ho.bucket_at[2 * c], ho.bucket_at[2 * c + 2]):
                _add(ma, cl, ids, ro, fa, wo, sc, r, slot, ho.bucket[at], 1)
        sc.slot_seen[slot] = 0
        _list_domains(sc, slot)
    for i in range(sc.slot_seen[slot], wo.log_size[0]):
        entry = wo.log[i]
        if entry >= 0:
            _add(ma, cl, ids, ro, fa, wo, sc, r, slot, entry, -1)
        else:
            _add(ma, cl, ids, ro, fa, wo, sc, r, slot, -2 - entry, 1)
    sc.slot_seen[slot] = wo.log_size[0]
    return slot


@inner
def limits_bind(fa: Facts, wo: Work) -> bool:
    """Quotas or the spend limit could run out if every free machine were taken."""
    for pool in range(len(fa.quota)):
        if fa.quota[pool] >= 0 and wo.used[pool] + fa.pool_free[pool] > fa.quota[pool]:
            return True
    return bool(fa.limits[0] >= 0 and fa.limits[1] > fa.limits[0] - wo.spend[0])


@inner
def limited_sums(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, planned: bool,
) -> int:  # fmt: skip
    """Free capacity per domain under limits that bind: walked machine by machine.

    Each domain draws on the limits as if it were alone, Speculative machines in the order of ids.
    """
    slot = len(sc.slot_type)
    _clear(sc.sums, sc.sum_count, slot)
    key = ro.domain_key[r]
    column = fa.domain_column[key]
    for domain in range(fa.domain_count[key]):
        lo, hi = 0, len(ho.free)
        if column >= 0:
            lo, hi = ho.domain_at[column, domain], ho.domain_at[column, domain + 1]
        charged = 0
        for at in range(lo, hi):
            m = ho.domain[at] if column >= 0 else ho.free[at]
            c = ma.cls[m]
            if column < 0 and fa.domain_of_class[key, c] != domain:
                continue
            if _owned(ids, ma, m) or not suits(cl, ro, fa, sc, r, c) or not fits(ma, ro, fa, r, m):
                continue
            if not available(ma, ids, ro, fa, wo, r, m, planned):
                continue
            if ma.state[m] == SPECULATIVE:
                if not may_create(cl, fa, wo, c):
                    continue
                _charge(cl, wo, c, 1)
                sc.cand[charged] = m
                charged += 1
            for j in range(ro.width[r]):
                sc.sums[slot, domain, j] += sc.give[c, j]
            sc.sum_count[slot, domain] += 1
        for i in range(charged):
            _charge(cl, wo, ma.cls[sc.cand[i]], -1)
    _list_domains(sc, slot)
    return slot


@inner
def _charge(cl: ClassArrays, wo: Work, c: int, sign: int) -> None:
    wo.used[cl.pool[c]] += sign
    if cl.elastic[c]:
        wo.spend[0] += sign * cl.price[c]
