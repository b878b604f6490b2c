"""Heads: the candidates among which a row chooses in one step.

There is one head per bucket of interchangeable machines, its next available one, and one for each
machine that is reserved for the row. In the domain of a gang on a topology column (its rack) every
machine is a head of its own; under a spread over such a column (racks) the next machine of each
lane is a head: the machines of a bucket in one domain (`domains`).
"""

from __future__ import annotations

from bigfleet.decision.kernels.amounts import compare_cost, domain_of, rough_cost
from bigfleet.decision.kernels.classify import owner_of, penalty_rank
from bigfleet.decision.kernels.domains import make_lanes
from bigfleet.decision.kernels.layout import (
    I32,
    IDLE,
    LANE_END,
    LANE_FIRST,
    ClassArrays,
    Facts,
    Holdings,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.spread import drop_skewed, has_labels
from bigfleet.decision.kernels.supply import available, may_create, reserved_for, suits
from bigfleet.jit.decorators import inner
from bigfleet.model.match_set import AVOIDED

ABSENT, SKEWED, RESERVED, GOOD, CREATE, RISKY = -2, -1, 0, 1, 2, 3
"""Tiers of a head, best first; the negative ones cannot be taken in this step."""
CLOSE = 1e-9
"""Costs closer than this, relatively, are compared exactly."""
_ALONE, NEXT_RESERVED, CHAINED = -1, -2, -3
"""In ``head_at``: a head that stands for itself; one reserved for the row; one whose successors are
in a lane, from the place in ``k1`` to that in ``k2``."""


@inner
def _next_of(
    ma: MachineArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, r: int, machines: I32,
    at: int, end: int, planned: bool,
) -> int:  # fmt: skip
    """The place of the next machine of a list that the row could take, -1 for none."""
    while at < end:
        m = machines[at]
        if available(ma, ids, ro, fa, wo, r, m, planned) and not (
            ma.stamp[m] >= 0 and ma.state[m] == IDLE and reserved_for(ids, ro, r, ma.stamp[m])
        ):
            return at
        at += 1
    return -1


@inner
def _add_head(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, sc: Scratch, r: int,
    heads: int, m: int, at: int, end: int,
) -> int:  # fmt: skip
    c = ma.cls[m]
    sc.head_at[heads] = at
    sc.head_end[heads] = end
    sc.head_cost[heads] = cl.price[c] + cl.loss[c, ro.interruption[r]]
    sc.head_avoid[heads] = fa.matches[ro.match[r], c] == AVOIDED
    set_head(ma, ids, sc, heads, m)
    return heads + 1


@inner
def set_head(ma: MachineArrays, ids: Identities, sc: Scratch, h: int, m: int) -> None:
    """What a step wants to know of a head, side by side."""
    sc.head[h] = m
    if m >= 0:
        sc.head_cls[h] = ma.cls[m]
        sc.head_idle[h] = ma.state[m] == IDLE
        sc.head_rank[h] = ma.rank[m]
        sc.head_penalty[h] = penalty_rank(ma, ids, m)


@inner
def advance(
    ma: MachineArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work, sc: Scratch,
    r: int, h: int, planned: bool,
) -> None:  # fmt: skip
    """After a head was taken, let the next machine of its bucket or lane stand there, if any."""
    if sc.head_at[h] == CHAINED:
        sc.k1[h] = _next_of(
            ma, ids, ro, fa, wo, r, sc.lane_machine, sc.k1[h] + 1, sc.k2[h], planned
        )
        set_head(ma, ids, sc, h, sc.lane_machine[sc.k1[h]] if sc.k1[h] >= 0 else -1)
        return
    if sc.head_at[h] >= 0:
        at, end = sc.head_at[h] + 1, sc.head_end[h]
        sc.head_at[h] = _next_of(ma, ids, ro, fa, wo, r, ho.bucket, at, end, planned)
    set_head(ma, ids, sc, h, ho.bucket[sc.head_at[h]] if sc.head_at[h] >= 0 else -1)


@inner
def _refresh_front(ma: MachineArrays, ids: Identities, ho: Holdings, wo: Work, b: int) -> None:
    """Look up the first free machine of a bucket again."""
    end = ho.bucket_end[b]
    while wo.position[b] < end and wo.taken[ho.bucket[wo.position[b]]] >= 0:
        wo.position[b] += 1
    wo.stale[b] = 0
    wo.front[b, 0] = -1
    if wo.position[b] < end:
        m = ho.bucket[wo.position[b]]
        wo.front[b, 0] = m
        wo.front[b, 1] = ma.rank[m]
        wo.front[b, 2] = penalty_rank(ma, ids, m)
        if ma.state[m] == IDLE and owner_of(ids, ma.stamp[m]) >= 0:
            wo.front[b, 2] = 0


@inner
def _lone_heads(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, sc: Scratch,
    r: int, heads: int, machines: I32, lo: int, hi: int, planned: bool,
) -> int:  # fmt: skip
    """Every machine of a list is a head, reserved ones excepted: they are there already."""
    for i in range(lo, hi):
        m = machines[i]
        if not suits(cl, ro, fa, sc, r, ma.cls[m]):
            continue
        if not available(ma, ids, ro, fa, wo, r, m, planned):
            continue
        stamp = ma.stamp[m]
        if stamp >= 0 and ma.state[m] == IDLE and reserved_for(ids, ro, r, stamp):
            continue
        heads = _add_head(ma, cl, ids, ro, fa, sc, r, heads, m, _ALONE, 0)
    return heads


@inner
def _lane_heads(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, sc: Scratch,
    r: int, heads: int, key: int, b: int, planned: bool,
) -> int:  # fmt: skip
    """A head per domain of a spread in one bucket; what follows it there is no better anywhere."""
    for lane in range(sc.lane_at[key, b], sc.lane_at[key, b + 1]):
        at, end = sc.lane[lane, LANE_FIRST], sc.lane[lane, LANE_END]
        while at < end and wo.taken[sc.lane_machine[at]] >= 0:
            at += 1
        sc.lane[lane, LANE_FIRST] = at
        at = _next_of(ma, ids, ro, fa, wo, r, sc.lane_machine, at, end, planned)
        if at >= 0:
            sc.k1[heads], sc.k2[heads] = at, end
            m = sc.lane_machine[at]
            heads = _add_head(ma, cl, ids, ro, fa, sc, r, heads, m, CHAINED, 0)
    return heads


@inner
def _reserved_heads(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, planned: bool,
) -> int:  # fmt: skip
    heads = 0
    for i in range(ro.members[r], ro.members[r + 1]):
        key = ids.key[ro.member[i]]
        for j in range(ho.idle_at[key], ho.idle_at[key + 1]):
            m = ho.idle[j]
            if not reserved_for(ids, ro, r, ma.stamp[m]):
                continue
            if not suits(cl, ro, fa, sc, r, ma.cls[m]):
                continue
            if not available(ma, ids, ro, fa, wo, r, m, planned):
                continue
            if ro.domain_key[r] >= 0:
                if domain_of(ma, fa, ro.domain_key[r], m) != wo.domain[r]:
                    continue
            heads = _add_head(ma, cl, ids, ro, fa, sc, r, heads, m, NEXT_RESERVED, 0)
    return heads


@inner
def spread_columns(ro: Rows, fa: Facts, r: int) -> tuple[int, int]:
    """How many constraints of a row are over topology columns, and the last of them."""
    count, over = 0, -1
    for i in range(ro.spread[r], ro.spread[r + 1]):
        if fa.domain_column[ro.spread_key[i]] >= 0:
            count, over = count + 1, i
    return count, over


@inner
def fill_heads(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, planned: bool,
) -> int:  # fmt: skip
    heads = _reserved_heads(ma, cl, ids, ro, fa, ho, wo, sc, r, planned)
    key = ro.domain_key[r]
    columns, over = spread_columns(ro, fa, r) if key < 0 else (0, -1)
    if columns == 1:
        make_lanes(ma, ids, fa, ho, sc, ro.spread_key[over])
    plain = not planned and ro.masks[r] == ro.masks[r + 1]
    if key >= 0 and fa.domain_column[key] >= 0:
        column, domain = fa.domain_column[key], wo.domain[r]
        lo, hi = ho.domain_at[column, domain], ho.domain_at[column, domain + 1]
        return _lone_heads(ma, cl, ids, ro, fa, wo, sc, r, heads, ho.domain, lo, hi, planned)
    for i in range(fa.match_start[ro.match[r]], fa.match_start[ro.match[r] + 1]):
        c = fa.match_class[i]
        if key >= 0 and fa.domain_of_class[key, c] != wo.domain[r]:
            continue
        if ho.bucket_at[2 * c] == ho.bucket_at[2 * c + 2] or not suits(cl, ro, fa, sc, r, c):
            continue
        for b in range(2 * c, 2 * c + 2):
            if wo.stale[b]:
                _refresh_front(ma, ids, ho, wo, b)
            if wo.front[b, 0] < 0:
                continue
            start, end = wo.position[b], ho.bucket_end[b]
            if columns == 1:
                heads = _lane_heads(
                    ma, cl, ids, ro, fa, wo, sc, r, heads, ro.spread_key[over], b, planned
                )
            elif columns:
                heads = _lone_heads(
                    ma, cl, ids, ro, fa, wo, sc, r, heads, ho.bucket, start, end, planned
                )
            elif plain and wo.front[b, 2] > 0:
                heads = _front_head(cl, ro, fa, wo, sc, r, heads, b, c, start, end)
            else:
                at = _next_of(ma, ids, ro, fa, wo, r, ho.bucket, start, end, planned)
                if at >= 0:
                    heads = _add_head(ma, cl, ids, ro, fa, sc, r, heads, ho.bucket[at], at, end)
    return heads


@inner
def _front_head(
    cl: ClassArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, r: int, heads: int, b: int, c: int,
    at: int, end: int,
) -> int:  # fmt: skip
    """The first machine of a bucket as a head, from what is known of it."""
    sc.head[heads] = wo.front[b, 0]
    sc.head_at[heads] = at
    sc.head_end[heads] = end
    sc.head_cost[heads] = cl.price[c] + cl.loss[c, ro.interruption[r]]
    sc.head_cls[heads] = c
    sc.head_idle[heads] = b % 2 == 0
    sc.head_avoid[heads] = fa.matches[ro.match[r], c] == AVOIDED
    sc.head_rank[heads] = wo.front[b, 1]
    sc.head_penalty[heads] = wo.front[b, 2]
    return heads + 1


@inner
def rate_heads(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, r: int,
    heads: int,
) -> None:  # fmt: skip
    """The tier of every head in this step."""
    constrained = ro.spread[r] < ro.spread[r + 1]
    for h in range(heads):
        m = sc.head[h]
        if m < 0:
            sc.head_tier[h] = ABSENT
        elif sc.head_idle[h]:
            sc.head_tier[h] = RESERVED if sc.head_at[h] == NEXT_RESERVED else GOOD
        else:
            sc.head_tier[h] = CREATE if may_create(cl, fa, wo, sc.head_cls[h]) else ABSENT
        if constrained and m >= 0 and not has_labels(ma, ro, fa, r, m):
            sc.head_tier[h] = ABSENT
    if constrained:
        drop_skewed(ma, ro, fa, wo, sc, r, heads)
    cheapest = -1
    for h in range(heads):
        if sc.head_tier[h] == CREATE and (cheapest < 0 or sc.head_cost[h] < cheapest):
            cheapest = sc.head_cost[h]
    if cheapest < 0:
        return
    for h in range(heads):
        if sc.head_tier[h] == GOOD:
            if cl.loss[sc.head_cls[h], ro.interruption[r]] > cheapest:
                sc.head_tier[h] = RISKY


@inner
def best_head(ro: Rows, sc: Scratch, r: int, heads: int) -> int:
    """Tier, cost per useful unit, not avoided, then (Idle) reclamation penalty, then id."""
    best, tier, width = -1, 9, ro.width[r]
    for h in range(heads):
        t = sc.head_tier[h]
        if t < 0 or t > tier:
            continue
        c = sc.head_cls[h]
        x = rough_cost(sc.head_cost[h], sc.give[c], sc.left, width)
        if t == tier:
            y = sc.head_x[best]
            if x > y + CLOSE * y:
                continue
            if x >= y - CLOSE * y and not better(sc, width, h, best):
                continue
        best, tier = h, t
        sc.head_x[h] = x
    return best


@inner
def better(sc: Scratch, width: int, a: int, b: int) -> bool:
    """Head ``a`` before head ``b`` of the same tier, exactly."""
    sign = compare_cost(
        sc.head_cost[a], sc.give[sc.head_cls[a]], sc.head_cost[b], sc.give[sc.head_cls[b]],
        sc.left, width,
    )  # fmt: skip
    return sign < 0 or (sign == 0 and earlier(sc, a, b))


@inner
def earlier(sc: Scratch, a: int, b: int) -> bool:
    """Of two heads at the same cost: one that is not avoided, the lower reclamation penalty (Idle),
    then the id.
    """
    if sc.head_avoid[a] != sc.head_avoid[b]:
        return bool(sc.head_avoid[a] < sc.head_avoid[b])
    if sc.head_idle[a] and sc.head_penalty[a] != sc.head_penalty[b]:
        return bool(sc.head_penalty[a] < sc.head_penalty[b])
    return bool(sc.head_rank[a] < sc.head_rank[b])
