"""Acquire: free machines for what credit left missing, always the best one next.

The choice is made among *heads*: one per bucket of interchangeable machines, its next available
one, and one for each machine that is reserved for the row. Where a domain on a topology column
matters (a gang's rack, a spread over racks) every machine is a head of its own.
"""

from __future__ import annotations

from bigfleet.decision.kernels.amounts import (
    compare_cost,
    covered,
    domain_of,
    fits,
    look_at,
    rough_cost,
    subtract,
)
from bigfleet.decision.kernels.classify import owner_of, penalty_rank
from bigfleet.decision.kernels.layout import (
    COVERS_UNIT,
    I32,
    IDLE,
    OFFERS_ALL,
    SPECULATIVE,
    Classes,
    Facts,
    Holdings,
    Identities,
    Machines,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.spread import count_claim, drop_skewed, has_labels, skew_holds
from bigfleet.decision.kernels.stamps import stamp_new
from bigfleet.model.columns.jit import jit

ABSENT, SKEWED, RESERVED, GOOD, CREATE, RISKY = -2, -1, 0, 1, 2, 3
"""Tiers of a head, best first; the negative ones cannot be taken in this step."""
_CLOSE = 1e-9
"""Costs closer than this, relatively, are compared exactly."""
_ALONE, _RESERVED = -1, -2
"""In ``head_at``: a head that stands for itself; one reserved for the row."""


@jit
def satisfied(ro: Rows, wo: Work, r: int) -> bool:
    """Nothing is missing, members of a folded row that are served as gangs counted."""
    if covered(wo.left[r], ro.width[r]):
        return True
    return bool(wo.served[r] > 0 and wo.left[r, 0] <= wo.served[r])


@jit
def reserved_for(ids: Identities, ro: Rows, r: int, stamp: int) -> bool:
    """An Idle machine with this stamp was made or freed for the row."""
    owner = owner_of(ids, stamp)
    if owner < 0:
        return False
    if owner == r:
        return True
    return bool(
        owner == ro.parent[r] and ids.key[stamp] == ids.key[ro.member[ro.members[r]]]
    )


@jit
def _reserved_against(ids: Identities, ro: Rows, wo: Work, r: int, stamp: int) -> bool:
    """Kept for a live, unmet row that had its turn before this one."""
    owner = owner_of(ids, stamp)
    if owner < 0 or owner == r or owner == ro.parent[r]:
        return False
    return bool(ro.position[owner] < ro.position[r] and not satisfied(ro, wo, owner))


@jit
def available(
    ma: Machines, ids: Identities, ro: Rows, fa: Facts, wo: Work, r: int, m: int, planned: bool
) -> bool:
    """A free machine of a class that suits the row is not spoken for."""
    if wo.taken[m] >= 0 or (planned and wo.aside[m]):
        return False
    if ro.masks[r] < ro.masks[r + 1] and not fits(ma, ro, fa, r, m):
        return False
    return not (
        ma.state[m] == IDLE
        and ma.stamp[m] >= 0
        and _reserved_against(ids, ro, wo, r, ma.stamp[m])
    )


@jit
def suits(cl: Classes, ro: Rows, fa: Facts, sc: Scratch, r: int, c: int) -> bool:
    """Machines of the class may be newly placed for the row."""
    if not fa.matches[ro.match[r], c] or cl.loss[c, ro.interruption[r]] < 0:
        return False
    return look_at(cl, ro, fa, sc, r, c) == COVERS_UNIT | OFFERS_ALL


@jit
def may_create(cl: Classes, fa: Facts, wo: Work, c: int) -> bool:
    """Stock, quota and spend limit allow one more machine of the class."""
    return not cl.cooling[c] and within_quota(cl, fa, wo, c) and within_spend(cl, fa, wo, c)


@jit
def within_quota(cl: Classes, fa: Facts, wo: Work, c: int) -> bool:
    quota = fa.quota[cl.pool[c]]
    return bool(quota < 0 or wo.used[cl.pool[c]] < quota)


@jit
def within_spend(cl: Classes, fa: Facts, wo: Work, c: int) -> bool:
    limit = fa.limits[0]
    if limit < 0 or not cl.elastic[c] or cl.price[c] == 0:
        return True
    return bool(wo.spend[0] + cl.price[c] <= limit)


# -- heads -----------------------------------------------------------------------------------


@jit
def _next_in_bucket(
    ma: Machines, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work, r: int, at: int,
    end: int, planned: bool,
) -> int:  # fmt: skip
    while at < end:
        m = ho.bucket[at]
        if available(ma, ids, ro, fa, wo, r, m, planned) and not (
            ma.stamp[m] >= 0 and ma.state[m] == IDLE and reserved_for(ids, ro, r, ma.stamp[m])
        ):
            return at
        at += 1
    return -1


@jit
def _add_head(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, sc: Scratch, r: int, heads: int, m: int,
    at: int, end: int,
) -> int:  # fmt: skip
    c = ma.cls[m]
    sc.head_at[heads] = at
    sc.head_end[heads] = end
    sc.head_cost[heads] = cl.price[c] + cl.loss[c, ro.interruption[r]]
    _set_head(ma, ids, sc, heads, m)
    return heads + 1


@jit
def _set_head(ma: Machines, ids: Identities, sc: Scratch, h: int, m: int) -> None:
    """What a step wants to know of a head, side by side."""
    sc.head[h] = m
    if m >= 0:
        sc.head_cls[h] = ma.cls[m]
        sc.head_idle[h] = ma.state[m] == IDLE
        sc.head_rank[h] = ma.rank[m]
        sc.head_penalty[h] = penalty_rank(ma, ids, m)


@jit
def _refresh_front(
    ma: Machines, ids: Identities, ho: Holdings, wo: Work, b: int
) -> None:
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


@jit
def _lone_heads(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, wo: Work, sc: Scratch,
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
        heads = _add_head(ma, cl, ids, ro, sc, r, heads, m, _ALONE, 0)
    return heads


@jit
def _reserved_heads(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work,
    sc: Scratch, r: int, planned: bool,
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
            heads = _add_head(ma, cl, ids, ro, sc, r, heads, m, _RESERVED, 0)
    return heads


@jit
def _column_matters(ro: Rows, fa: Facts, r: int) -> bool:
    if ro.domain_key[r] >= 0:
        return bool(fa.domain_column[ro.domain_key[r]] >= 0)
    for i in range(ro.spread[r], ro.spread[r + 1]):
        if fa.domain_column[ro.spread_key[i]] >= 0:
            return True
    return False


@jit
def _fill_heads(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work,
    sc: Scratch, r: int, planned: bool,
) -> int:  # fmt: skip
    heads = _reserved_heads(ma, cl, ids, ro, fa, ho, wo, sc, r, planned)
    key = ro.domain_key[r]
    alone = _column_matters(ro, fa, r)
    plain = not planned and ro.masks[r] == ro.masks[r + 1]
    if key >= 0 and alone:
        column, domain = fa.domain_column[key], wo.domain[r]
        lo, hi = ho.domain_at[column, domain], ho.domain_at[column, domain + 1]
        return _lone_heads(
            ma, cl, ids, ro, fa, wo, sc, r, heads, ho.domain, lo, hi, planned
        )
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
            if alone:
                heads = _lone_heads(
                    ma, cl, ids, ro, fa, wo, sc, r, heads, ho.bucket, start, end, planned
                )
            elif plain and wo.front[b, 2] > 0:
                heads = _front_head(cl, ro, wo, sc, r, heads, b, c, start, end)
            else:
                at = _next_in_bucket(ma, ids, ro, fa, ho, wo, r, start, end, planned)
                if at >= 0:
                    heads = _add_head(ma, cl, ids, ro, sc, r, heads, ho.bucket[at], at, end)
    return heads


@jit
def _front_head(
    cl: Classes, ro: Rows, wo: Work, sc: Scratch, r: int, heads: int, b: int, c: int, at: int,
    end: int,
) -> int:  # fmt: skip
    """The first machine of a bucket as a head, from what is known of it."""
    sc.head[heads] = wo.front[b, 0]
    sc.head_at[heads] = at
    sc.head_end[heads] = end
    sc.head_cost[heads] = cl.price[c] + cl.loss[c, ro.interruption[r]]
    sc.head_cls[heads] = c
    sc.head_idle[heads] = b % 2 == 0
    sc.head_rank[heads] = wo.front[b, 1]
    sc.head_penalty[heads] = wo.front[b, 2]
    return heads + 1


@jit
def _rate_heads(
    ma: Machines, cl: Classes, ro: Rows, fa: Facts, wo: Work, sc: Scratch, r: int, heads: int
) -> None:
    """The tier of every head in this step."""
    constrained = ro.spread[r] < ro.spread[r + 1]
    for h in range(heads):
        m = sc.head[h]
        if m < 0:
            sc.head_tier[h] = ABSENT
        elif sc.head_idle[h]:
            sc.head_tier[h] = RESERVED if sc.head_at[h] == _RESERVED else GOOD
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


@jit
def _best_head(ro: Rows, sc: Scratch, r: int, heads: int) -> int:
    """Tier, cost per useful unit, then (Idle) reclamation penalty, then id."""
    best, tier, width = -1, 9, ro.width[r]
    for h in range(heads):
        t = sc.head_tier[h]
        if t < 0 or t > tier:
            continue
        c = sc.head_cls[h]
        x = rough_cost(sc.head_cost[h], sc.give[c], sc.left, width)
        if t == tier:
            y = sc.head_x[best]
            if x > y + _CLOSE * y:
                continue
            if x >= y - _CLOSE * y and not _better(sc, width, h, best):
                continue
        best, tier = h, t
        sc.head_x[h] = x
    return best


@jit
def _better(sc: Scratch, width: int, a: int, b: int) -> bool:
    """Head ``a`` before head ``b`` of the same tier, exactly."""
    sign = compare_cost(
        sc.head_cost[a], sc.give[sc.head_cls[a]], sc.head_cost[b], sc.give[sc.head_cls[b]],
        sc.left, width,
    )  # fmt: skip
    return sign < 0 or (sign == 0 and _earlier(sc, a, b))


@jit
def _earlier(sc: Scratch, a: int, b: int) -> bool:
    """Of two heads at the same cost: the lower reclamation penalty (Idle), then the id."""
    if sc.head_idle[a] and sc.head_penalty[a] != sc.head_penalty[b]:
        return bool(sc.head_penalty[a] < sc.head_penalty[b])
    return bool(sc.head_rank[a] < sc.head_rank[b])


# -- taking ----------------------------------------------------------------------------------


@jit
def take(
    ma: Machines, cl: Classes, ro: Rows, fa: Facts, wo: Work, r: int, m: int, sign: int
) -> None:
    """Take a machine for a row, or (sign -1) give it back."""
    wo.taken[m] = r if sign > 0 else -1
    if ma.state[m] == SPECULATIVE:
        c = ma.cls[m]
        wo.used[cl.pool[c]] += sign
        if cl.elastic[c]:
            wo.spend[0] += sign * cl.price[c]
    if ro.spread[r] < ro.spread[r + 1]:
        count_claim(ma, ro, fa, wo, r, m, sign)


@jit
def acquire(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work,
    sc: Scratch, r: int, planned: bool,
) -> tuple[int, int]:  # fmt: skip
    """Take machines until ``sc.left`` is covered or none is left; (takes, heads) in scratch."""
    width = ro.width[r]
    if covered(sc.left, width):
        return 0, 0
    heads = _fill_heads(ma, cl, ids, ro, fa, ho, wo, sc, r, planned)
    plain = width == 1 and ro.spread[r] == ro.spread[r + 1] and fa.limits[0] < 0 and not fa.limits[2]
    takes = 0
    while not covered(sc.left, width):
        _rate_heads(ma, cl, ro, fa, wo, sc, r, heads)
        h = _best_head(ro, sc, r, heads)
        if h < 0:
            break
        if plain and sc.head_at[h] >= 0:
            more = _take_run(ma, cl, ids, ro, fa, ho, wo, sc, r, h, heads, takes, planned)
            if more > takes:
                takes = more
                continue
        _take_head(ma, cl, ids, ro, fa, ho, wo, sc, r, h, takes, planned)
        takes += 1
    return takes, heads


@jit
def _take_head(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work,
    sc: Scratch, r: int, h: int, takes: int, planned: bool,
) -> None:  # fmt: skip
    """Take a head, and let the next machine of its bucket stand there."""
    m = sc.head[h]
    take(ma, cl, ro, fa, wo, r, m, 1)
    sc.takes[takes] = m
    subtract(sc, ma.cls[m], sc.left, ro.width[r], 1)
    at = sc.head_at[h]
    if at >= 0:
        at = _next_in_bucket(ma, ids, ro, fa, ho, wo, r, at + 1, sc.head_end[h], planned)
        sc.head_at[h] = at
    _set_head(ma, ids, sc, h, ho.bucket[at] if at >= 0 else -1)


@jit
def _take_run(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work,
    sc: Scratch, r: int, best: int, heads: int, takes: int, planned: bool,
) -> int:  # fmt: skip
    """Take on from the heads that cost the same as the best, while nothing else can win.

    As long as no machine would cover all that is left of a uniform row, costs per useful unit
    keep their order whatever is left; only ids decide among the heads that tie.
    """
    largest = 0
    for h in range(heads):
        if sc.head_tier[h] >= 0:
            largest = max(largest, sc.give[sc.head_cls[h], 0])
    if sc.left[0] < largest:
        return takes
    ties = 0
    c = sc.head_cls[best]
    for h in range(heads):
        if sc.head_tier[h] != sc.head_tier[best] or sc.head_at[h] < 0:
            continue
        other = sc.head_cls[h]
        if compare_cost(
            sc.head_cost[h], sc.give[other], sc.head_cost[best], sc.give[c], sc.left, 1
        ) == 0:  # fmt: skip
            sc.index[ties] = h
            ties += 1
    while sc.left[0] >= largest:
        h = sc.index[0]
        for i in range(1, ties):
            if _earlier(sc, sc.index[i], h):
                h = sc.index[i]
        _take_head(ma, cl, ids, ro, fa, ho, wo, sc, r, h, takes, planned)
        takes += 1
        if sc.head[h] < 0:
            break
    return takes


@jit
def give_back(
    ma: Machines, cl: Classes, ro: Rows, fa: Facts, wo: Work, sc: Scratch, r: int, takes: int,
    heads: int,
) -> int:  # fmt: skip
    """Drop takes that turned out redundant, dearest first, later takes first on ties."""
    width = ro.width[r]
    if takes < 2 or not covered(sc.left, width):
        return takes
    possible = False
    for t in range(takes):
        if _redundant(ma, sc, width, sc.takes[t]):
            possible = True
    if not possible:
        return takes
    for t in range(takes):
        c = ma.cls[sc.takes[t]]
        sc.k1[t] = cl.price[c] + cl.loss[c, ro.interruption[r]]
    for _ in range(takes):
        dearest = -1
        for t in range(takes):
            if sc.k1[t] >= 0 and (dearest < 0 or sc.k1[t] >= sc.k1[dearest]):
                dearest = t
        sc.k1[dearest] = -1
        m = sc.takes[dearest]
        if not _redundant(ma, sc, width, m):
            continue
        if ro.spread[r] < ro.spread[r + 1]:
            _rate_heads(ma, cl, ro, fa, wo, sc, r, heads)
            if not skew_holds(ma, ro, fa, wo, sc, r, heads, takes, m):
                continue
        take(ma, cl, ro, fa, wo, r, m, -1)
        subtract(sc, ma.cls[m], sc.left, width, -1)
        sc.takes[dearest] = -2 - m
    kept = 0
    for t in range(takes):
        if sc.takes[t] >= 0:
            sc.takes[kept] = sc.takes[t]
            kept += 1
    return kept


@jit
def _redundant(ma: Machines, sc: Scratch, width: int, m: int) -> bool:
    """The rest covers without it."""
    c = ma.cls[m]
    for j in range(width):
        if sc.left[j] + sc.give[c, j] > 0:
            return False
    return True


@jit
def commit(ma: Machines, ro: Rows, wo: Work, sc: Scratch, r: int, takes: int) -> None:
    """What was taken becomes the row's."""
    for t in range(takes):
        m = sc.takes[t]
        stamp_new(ro, wo, r, m)
        wo.claim[m] = r
        subtract(sc, ma.cls[m], wo.left[r], ro.width[r], 1)
        c = ma.cls[m]
        wo.changes[c] += 1
        wo.stale[2 * c] = 1
        wo.stale[2 * c + 1] = 1
        if ma.state[m] == SPECULATIVE:
            wo.counters[0] += 1
        note(wo, m)


@jit
def note(wo: Work, entry: int) -> None:
    """Remember that a free machine was taken (or, as ``-2 - m``, became free again)."""
    wo.log[wo.log_size[0]] = entry
    wo.log_size[0] += 1
