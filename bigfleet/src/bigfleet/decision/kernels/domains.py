"""Free capacity per domain for gangs; what might yield there is in `preemptible_sums`.

Under a domain key the free machines of a bucket in one domain form a *lane*. Lanes are made once a
cycle, when the first row asks, and know how many of their machines are still free. From them come
the sums per domain for each *type* of gang (same requirements and unit): made by lanes, not by
machines, and brought up to date from the log of takes when a gang of that type looks.
"""

from __future__ import annotations

import numpy as np

from bigfleet.decision.kernels.amounts import domain_of, fits
from bigfleet.decision.kernels.classify import owner_of
from bigfleet.decision.kernels.layout import (
    I64,
    IDLE,
    LANE_AT_FIRST,
    LANE_DOMAIN,
    LANE_END,
    LANE_FIRST,
    LANE_FREE,
    MOST_MONEY,
    SPECULATIVE,
    U8,
    ClassArrays,
    Facts,
    Holdings,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.preemptible_sums import holds_in_domain, tells_by_domain
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
def make_lanes(
    ma: MachineArrays, ids: Identities, fa: Facts, ho: Holdings, sc: Scratch, key: int
) -> None:
    """Make the lanes under a domain key, unless they are there; each key has its own stretch."""
    if sc.lane_known[key] >= 0:
        return
    sc.lane_known[key] = 0
    size = filled = key * len(ho.bucket)
    of = key * len(ma.state)
    for d in range(len(sc.chain_head)):
        sc.chain_head[d] = -1
    for b in range(len(ho.bucket_at) - 1):
        first = sc.lane_at[key, b] = size
        for i in range(ho.bucket_at[b], ho.bucket_at[b + 1]):
            m = ho.bucket[i]
            domain = domain_of(ma, fa, key, m)
            sc.lane_of[of + m] = -1
            if domain < 0:
                continue
            lane = sc.chain_head[domain]
            if lane < first:
                lane = sc.chain_head[domain] = size
                size += 1
                sc.lane[lane, LANE_DOMAIN] = domain
                sc.lane[lane, LANE_END] = sc.lane[lane, LANE_FREE] = 0
            sc.lane[lane, LANE_END] += 1
            if not _owned(ids, ma, m):
                sc.lane[lane, LANE_FREE] += 1
                sc.lane_of[of + m] = lane
        for lane in range(first, size):
            sc.lane[lane, LANE_FIRST] = filled
            filled += sc.lane[lane, LANE_END]
            sc.lane[lane, LANE_END] = sc.lane[lane, LANE_FIRST]
            sc.lane[lane, LANE_AT_FIRST] = sc.lane[lane, LANE_FREE]
        for i in range(ho.bucket_at[b], ho.bucket_at[b + 1]):
            domain = domain_of(ma, fa, key, ho.bucket[i])
            if domain >= 0:
                lane = sc.chain_head[domain]
                sc.lane_machine[sc.lane[lane, LANE_END]] = ho.bucket[i]
                sc.lane[lane, LANE_END] += 1
    sc.lane_at[key, len(ho.bucket_at) - 1] = size


@inner
def _count_lanes(
    ma: MachineArrays, ids: Identities, fa: Facts, ho: Holdings, wo: Work, sc: Scratch, key: int
) -> None:
    """Bring up to date how many machines of each lane are free, those owned by a row apart."""
    make_lanes(ma, ids, fa, ho, sc, key)
    for i in range(sc.lane_known[key], wo.log_size[0]):
        entry = wo.log[i]
        lane = sc.lane_of[key * len(ma.state) + (entry if entry >= 0 else -2 - entry)]
        if lane >= 0:
            sc.lane[lane, LANE_FREE] += -1 if entry >= 0 else 1
    sc.lane_known[key] = wo.log_size[0]


@inner
def _add_lanes(
    cl: ClassArrays, ro: Rows, fa: Facts, sc: Scratch, r: int, slot: int, tight: U8, what: int
) -> None:
    """Add up lanes in a slot, except those of tight domains; ``what`` is the count that counts."""
    key = ro.domain_key[r]
    for i in range(fa.match_start[ro.match[r]], fa.match_start[ro.match[r] + 1]):
        c = fa.match_class[i]
        if not fa.matches[ro.own_match[r], c] or not suits(cl, ro, fa, sc, r, c):
            continue
        end = 2 * c + 1 if cl.cooling[c] else 2 * c + 2
        for lane in range(sc.lane_at[key, 2 * c], sc.lane_at[key, end]):
            domain, count = sc.lane[lane, LANE_DOMAIN], sc.lane[lane, what]
            if count == 0 or (len(tight) > 0 and tight[domain]):
                continue
            if holds_in_domain(ro, r, domain):
                for j in range(ro.width[r]):
                    sc.sums[slot, domain, j] += count * sc.give[c, j]
                sc.sum_count[slot, domain] += count


@inner
def free_sums(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int,
) -> int:  # fmt: skip
    """The slot with the free capacity per domain for this type of gang, as of now."""
    kind, by_lanes, none = ro.gang_type[r], tells_by_domain(ro, fa, r), sc.give_flags[:0]
    slot = sc.sum_slot[kind]
    if by_lanes:
        _count_lanes(ma, ids, fa, ho, wo, sc, ro.domain_key[r])
    if slot < 0:
        slot = sc.clock[1] % len(sc.slot_type)
        sc.clock[1] += 1
        if sc.slot_type[slot] >= 0:
            sc.sum_slot[sc.slot_type[slot]] = -1
        sc.slot_type[slot] = kind
        sc.sum_slot[kind] = slot
        _clear(sc.sums, sc.sum_count, slot)
        if by_lanes:
            _add_lanes(cl, ro, fa, sc, r, slot, none, LANE_AT_FIRST)
        else:
            _add_machines(ma, cl, ids, ro, fa, ho, wo, sc, r, slot)
        sc.slot_seen[slot] = 0
        _list_domains(sc, slot)
    if by_lanes and wo.log_size[0] - sc.slot_seen[slot] > sc.slot_size[slot]:
        for i in range(sc.slot_size[slot]):
            domain = sc.slot_domain[slot, i]
            sc.sum_count[slot, domain] = 0
            for j in range(ro.width[r]):
                sc.sums[slot, domain, j] = 0
        _add_lanes(cl, ro, fa, sc, r, slot, none, LANE_FREE)
        sc.slot_seen[slot] = wo.log_size[0]
    for i in range(sc.slot_seen[slot], wo.log_size[0]):
        entry = wo.log[i]
        if entry >= 0:
            _add(ma, cl, ids, ro, fa, wo, sc, r, slot, entry, -1)
        else:
            _add(ma, cl, ids, ro, fa, wo, sc, r, slot, -2 - entry, 1)
    sc.slot_seen[slot] = wo.log_size[0]
    return slot


@inner
def _add_machines(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, slot: int,
) -> None:  # fmt: skip
    """Add up free machines one by one: for gangs that name values of other topology columns."""
    for i in range(fa.match_start[ro.match[r]], fa.match_start[ro.match[r] + 1]):
        c = fa.match_class[i]
        for at in range(ho.bucket_at[2 * c], ho.bucket_at[2 * c + 2]):
            _add(ma, cl, ids, ro, fa, wo, sc, r, slot, ho.bucket[at], 1)


@inner
def limits_bind(fa: Facts, wo: Work) -> bool:
    """Quotas or the spend limit could run out if every free machine were taken."""
    for pool in range(len(fa.quota)):
        if fa.quota[pool] >= 0 and wo.used[pool] + fa.pool_free[pool] > fa.quota[pool]:
            return True
    return bool(fa.limits[0] >= 0 and fa.limits[1] > fa.limits[0] - wo.spend[0])


@inner
def _tight_domains(cl: ClassArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, r: int) -> U8:
    """Domains in which limits could run out if every Speculative machine there were created."""
    key = ro.domain_key[r]
    domains = int(fa.domain_count[key])
    draw, tight = np.zeros((domains, 2), np.int64), np.zeros(domains, np.uint8)
    for pass_ in range(2):
        for i in range(fa.match_start[ro.match[r]], fa.match_start[ro.match[r] + 1]):
            c = fa.match_class[i]
            if cl.cooling[c] or not suits(cl, ro, fa, sc, r, c):
                continue
            quota, used = fa.quota[cl.pool[c]], wo.used[cl.pool[c]]
            for lane in range(sc.lane_at[key, 2 * c + 1], sc.lane_at[key, 2 * c + 2]):
                domain, count = sc.lane[lane, LANE_DOMAIN], sc.lane[lane, LANE_FREE]
                if count == 0:
                    continue
                if pass_ == 0:
                    draw[domain, 0] += count
                    if cl.elastic[c] and cl.price[c] > (MOST_MONEY - draw[domain, 1]) // count:
                        draw[domain, 1] = MOST_MONEY
                    elif cl.elastic[c]:
                        draw[domain, 1] += count * cl.price[c]
                elif (quota >= 0 and used + draw[domain, 0] > quota) or (
                    fa.limits[0] >= 0 and draw[domain, 1] > fa.limits[0] - wo.spend[0]
                ):
                    tight[domain] = 1
    return tight


@inner
def limited_sums(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, planned: bool,
) -> int:  # fmt: skip
    """Free capacity per domain under limits that bind: machine by machine where they could run out.

    Each domain draws on the limits as if it were alone, Speculative machines in the order of ids.
    """
    slot = len(sc.slot_type)
    _clear(sc.sums, sc.sum_count, slot)
    key = ro.domain_key[r]
    tight = np.ones(int(fa.domain_count[key]), np.uint8)
    if tells_by_domain(ro, fa, r):
        _count_lanes(ma, ids, fa, ho, wo, sc, key)
        tight = _tight_domains(cl, ro, fa, wo, sc, r)
        _add_lanes(cl, ro, fa, sc, r, slot, tight, LANE_FREE)
    for domain in range(fa.domain_count[key]):
        if tight[domain]:
            _add_alone(ma, cl, ids, ro, fa, ho, wo, sc, r, slot, domain, planned)
    _list_domains(sc, slot)
    return slot


@inner
def _add_alone(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, slot: int, domain: int, planned: bool,
) -> None:  # fmt: skip
    """Add up the machines of one domain as far as limits allow."""
    key = ro.domain_key[r]
    column = fa.domain_column[key]
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


@inner
def _charge(cl: ClassArrays, wo: Work, c: int, sign: int) -> None:
    wo.used[cl.pool[c]] += sign
    if cl.elastic[c]:
        wo.spend[0] += sign * cl.price[c]
