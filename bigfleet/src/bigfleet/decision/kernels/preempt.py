"""Phase 2: excess first, then strictly lower needs, for what phase 1 left unmet.

Victims with the same class and the same claimant's priority and penalties have the same score, so
they form buckets; a preemptor looks at the next machine of each.
"""

from __future__ import annotations

import numpy as np

from bigfleet.decision.kernels.acquire import acquire, commit
from bigfleet.decision.kernels.amounts import (
    compare_cost,
    covered,
    fits,
    in_domain,
    look_at,
    subtract,
)
from bigfleet.decision.kernels.classify import starts
from bigfleet.decision.kernels.index_sort import sink
from bigfleet.decision.kernels.layout import (
    CONFIGURED,
    DO_NOT_DISRUPT,
    I32,
    I64,
    LEAVING,
    UNUSABLE,
    ClassArrays,
    Facts,
    Holdings,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
    Victims,
    Work,
)
from bigfleet.decision.kernels.preempt_spread import make_room
from bigfleet.decision.kernels.spread import count_claim, has_room
from bigfleet.decision.kernels.stamps import next_turn, stamp_new, unname
from bigfleet.decision.kernels.supply import satisfied, suits, use_machine
from bigfleet.jit.decorators import inner, jit
from bigfleet.model.match_set import AVOIDED

_VOLUNTARY = 600
_UNSEEN = -2
"""A head that was not looked up yet; its bucket is in ``head_at``."""


@jit
def grace_of(gap: int) -> int:
    """Drain grace by priority gap."""
    if gap > 900_000:
        return 10
    if gap > 500_000:
        return 30
    if gap > 100_000:
        return 120
    return _VOLUNTARY


@jit
def victim_lists(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work,
    profile_of_row: I32, profile_of_identity: I32, profiles: int,
) -> tuple[I64, I32, I64, I32]:  # fmt: skip
    """Excess by class, and victims by (class, profile of who holds them), each in id order."""
    classes = len(cl.price)
    bucket = np.full(len(ma.state), -1, np.int32)
    counts = np.zeros(classes * profiles, np.int64)
    excess = np.zeros(classes, np.int64)
    for m in ma.order:
        kind = _holder(ma, ids, fa, wo, profile_of_row, profile_of_identity, m)
        if kind == -1:
            excess[ma.cls[m]] += 1
            bucket[m] = -2
        elif kind >= 0:
            bucket[m] = ma.cls[m] * profiles + kind
            counts[bucket[m]] += 1
    excess_at, victim_at = starts(excess), starts(counts)
    excess_list = np.empty(excess_at[-1], np.int32)
    victim_list = np.empty(victim_at[-1], np.int32)
    next_excess, next_victim = excess_at.copy(), victim_at.copy()
    for m in ma.order:
        if bucket[m] == -2:
            excess_list[next_excess[ma.cls[m]]] = m
            next_excess[ma.cls[m]] += 1
        elif bucket[m] >= 0:
            victim_list[next_victim[bucket[m]]] = m
            next_victim[bucket[m]] += 1
    return excess_at, excess_list, victim_at, victim_list


@inner
def _holder(
    ma: MachineArrays, ids: Identities, fa: Facts, wo: Work, profile_of_row: I32,
    profile_of_identity: I32, m: int,
) -> int:  # fmt: skip
    """Profile of who holds a machine; -1 for excess, -2 for what cannot be taken."""
    if ma.state[m] != CONFIGURED or ma.flags[m] & (UNUSABLE | LEAVING):
        return -2
    if wo.claim[m] >= 0:
        return profile_of_row[wo.claim[m]]
    cluster = ma.cluster[m]
    if cluster >= 0 and fa.reported[cluster]:
        return -2 if ma.flags[m] & DO_NOT_DISRUPT else -1
    return profile_of_identity[ma.stamp[m]] if ma.stamp[m] >= 0 else -2


@inner
def preempt(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, vi: Victims, rows: int,
) -> None:  # fmt: skip
    """Every unmet row's turn, in the total order."""
    for r in range(rows):
        if wo.cancel[0] != 0:
            return
        if satisfied(ro, wo, r) or ro.blocked[r] or (ro.domain_key[r] >= 0 and wo.domain[r] < 0):
            continue
        width = ro.width[r]
        _missing(ma, cl, ids, ro, fa, ho, wo, sc, r)
        if covered(sc.left, width):
            continue
        if ro.spread[r] < ro.spread[r + 1]:
            make_room(ma, cl, ids, ro, fa, ho, wo, sc, vi, r)
        free = 0
        if ro.domain_key[r] >= 0:
            free = acquire(ma, cl, ids, ro, fa, ho, wo, sc, r, False)
        picks = _pick_excess(ma, cl, ro, fa, wo, sc, vi, r, free)
        picks = _pick_victims(ma, cl, ro, fa, wo, sc, vi, r, picks)
        done = covered(sc.left, width)
        if ro.domain_key[r] >= 0 and not done:
            for t in range(free):
                use_machine(ma, cl, ro, fa, wo, r, sc.takes[t], -1)
            for t in range(free, picks):
                wo.preempt[sc.takes[t]] = -1
            continue
        for t in range(picks - 1, free - 1, -1):
            m = sc.takes[t]
            if done and _spare(ma, sc, width, m):
                subtract(sc, ma.cls[m], sc.left, width, -1)
                wo.preempt[m] = -1
                sc.takes[t] = -1
        _carry_out(ma, cl, ids, ro, fa, wo, sc, vi, r, free, picks)


@inner
def _missing(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int,
) -> None:  # fmt: skip
    """The row's deficit less what is on its way to it."""
    width = ro.width[r]
    for j in range(width):
        sc.left[j] = wo.left[r, j]
    sc.left[0] -= wo.served[r]
    for i in range(ro.members[r], ro.members[r + 1]):
        key = ids.key[ro.member[i]]
        for j in range(ho.coming_at[key], ho.coming_at[key + 1]):
            if wo.expected[ho.coming[j]] == r:
                look_at(cl, ro, fa, sc, r, ma.cls[ho.coming[j]])
                subtract(sc, ma.cls[ho.coming[j]], sc.left, width, 1)


@inner
def _spare(ma: MachineArrays, sc: Scratch, width: int, m: int) -> bool:
    for j in range(width):
        if sc.left[j] + sc.give[ma.cls[m], j] > 0:
            return False
    return True


@inner
def _pick_excess(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, vi: Victims,
    r: int, picks: int,
) -> int:  # fmt: skip
    """Unclaimed machines of other clusters, cheapest for the preemptor first."""
    width = ro.width[r]
    start = picks
    while not covered(sc.left, width):
        best, cost, avoid = -1, 0, False
        for i in range(fa.match_start[ro.match[r]], fa.match_start[ro.match[r] + 1]):
            c = fa.match_class[i]
            if vi.excess_at[c] == vi.excess_at[c + 1] or not suits(cl, ro, fa, sc, r, c):
                continue
            m = _next_excess(ma, ro, fa, wo, sc, vi, r, c, start, picks)
            if m < 0:
                continue
            mine = cl.price[c] + cl.loss[c, ro.interruption[r]]
            avoided = fa.matches[ro.match[r], c] == AVOIDED
            if best >= 0:
                sign = compare_cost(mine, sc.give[c], cost, sc.give[ma.cls[best]], sc.left, width)
                if sign > 0 or (sign == 0 and avoided and not avoid):
                    continue
                if sign == 0 and avoided == avoid and ma.rank[m] > ma.rank[best]:
                    continue
            best, cost, avoid = m, mine, avoided
        if best < 0:
            break
        wo.preempt[best] = r
        count_claim(ma, ro, fa, wo, r, best, -1)
        sc.takes[picks] = best
        picks += 1
        subtract(sc, ma.cls[best], sc.left, width, 1)
    return picks


@inner
def _next_excess(
    ma: MachineArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, vi: Victims, r: int, c: int,
    start: int, picks: int,
) -> int:  # fmt: skip
    end = vi.excess_at[c + 1]
    while vi.excess_next[c] < end and wo.preempt[vi.excess[vi.excess_next[c]]] >= 0:
        if wo.preempt[vi.excess[vi.excess_next[c]]] == r:
            break
        vi.excess_next[c] += 1
    for i in range(vi.excess_next[c], end):
        m = vi.excess[i]
        if wo.preempt[m] >= 0 or ma.cluster[m] == ro.cluster[r] or not fits(ma, ro, fa, r, m):
            continue
        if not in_domain(ma, ro, fa, wo, r, m) or not has_room(ma, ro, fa, wo, r, m):
            continue
        if vi.budget[ma.cluster[m]] >= 0:
            used = 0
            for t in range(start, picks):
                used += ma.cluster[sc.takes[t]] == ma.cluster[m]
            if used >= vi.budget[ma.cluster[m]]:
                continue
        return m
    return -1


@inner
def _pick_victims(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, vi: Victims,
    r: int, picks: int,
) -> int:  # fmt: skip
    """Machines of strictly lower needs, best score first, then id; not its own."""
    width, profiles, score = ro.width[r], len(vi.priority), sc.head_x
    if covered(sc.left, width):
        return picks
    heads = 0
    for i in range(fa.match_start[ro.match[r]], fa.match_start[ro.match[r] + 1]):
        c = fa.match_class[i]
        if vi.bucket_at[c] == vi.bucket_at[c + 1] or not suits(cl, ro, fa, sc, r, c):
            continue
        for k in range(vi.bucket_at[c], vi.bucket_at[c + 1]):
            b = vi.bucket[k]
            gap = ro.priority[r] - vi.priority[b - c * profiles]
            if gap <= 0:
                continue
            drain = cl.drain[c] if cl.drain[c] >= 0 else float(grace_of(gap))
            score[heads] = (
                gap * vi.weights[0]
                + (1.0 / max(drain, 1.0)) * vi.weights[1]
                + vi.worth[b - c * profiles, 0] * vi.weights[2]
                + vi.worth[b - c * profiles, 1] * vi.weights[3]
            )
            sc.head[heads] = _UNSEEN
            sc.head_at[heads] = b
            sc.head_end[heads] = vi.victim_at[b + 1]
            heads += 1
    while not covered(sc.left, width):
        ties = _best_heads(ma, ro, fa, wo, sc, vi, r, heads)
        if ties == 0:
            break
        while ties > 0 and not covered(sc.left, width):
            h = sc.sorted[0]
            m = sc.head[h]
            # Its domain may have become full since the head was looked up.
            if has_room(ma, ro, fa, wo, r, m):
                wo.preempt[m] = r
                count_claim(ma, ro, fa, wo, r, m, -1)
                sc.takes[picks] = m
                picks += 1
                subtract(sc, ma.cls[m], sc.left, width, 1)
            _advance(ma, ro, fa, wo, sc, vi, r, h, sc.head_at[h] + 1)
            if sc.head[h] < 0:
                ties -= 1
                sc.sorted[0] = sc.sorted[ties]
            sink(sc.sorted, sc.head_rank, 0, ties)
    return picks


@inner
def _best_heads(
    ma: MachineArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, vi: Victims, r: int, heads: int
) -> int:
    """All heads with the best score, as a heap by id; only heads that could win are looked up."""
    score = sc.head_x
    while True:
        top = -1
        for h in range(heads):
            if sc.head[h] != -1 and (top < 0 or score[h] > score[top]):
                top = h
        if top < 0:
            return 0
        ties = 0
        for h in range(heads):
            if sc.head[h] == -1 or score[h] != score[top]:
                continue
            if sc.head[h] == _UNSEEN:
                b = sc.head_at[h]
                while vi.victim_next[b] < sc.head_end[h]:
                    if wo.preempt[vi.victim[vi.victim_next[b]]] < 0:
                        break
                    vi.victim_next[b] += 1
                _advance(ma, ro, fa, wo, sc, vi, r, h, vi.victim_next[b])
            if sc.head[h] >= 0:
                sc.sorted[ties] = h
                ties += 1
        for i in range(ties // 2 - 1, -1, -1):
            sink(sc.sorted, sc.head_rank, i, ties)
        if ties > 0:
            return ties


@inner
def _advance(
    ma: MachineArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, vi: Victims, r: int, h: int,
    at: int,
) -> None:  # fmt: skip
    """Let a head stand for the next victim of its bucket from a place on."""
    at = _next_victim(ma, ro, fa, wo, vi, r, at, sc.head_end[h])
    sc.head_at[h] = at
    sc.head[h] = vi.victim[at] if at >= 0 else -1
    if at >= 0:
        sc.head_rank[h] = ma.rank[vi.victim[at]]


@inner
def _next_victim(
    ma: MachineArrays, ro: Rows, fa: Facts, wo: Work, vi: Victims, r: int, place: int, end: int
) -> int:
    while place < end:
        m = vi.victim[place]
        if (
            wo.preempt[m] < 0
            and not wo.moved[m]
            and fits(ma, ro, fa, r, m)
            and in_domain(ma, ro, fa, wo, r, m)
            and has_room(ma, ro, fa, wo, r, m)
        ):
            return place
        place += 1
    return -1


@inner
def _carry_out(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, sc: Scratch,
    vi: Victims, r: int, free: int, picks: int,
) -> None:  # fmt: skip
    """Commit free machines of a gang, move what is in the own cluster, mark the rest leaving."""
    commit(ma, ro, wo, sc, r, free)
    width = ro.width[r]
    for t in range(free, picks):
        m = sc.takes[t]
        if m < 0:
            continue
        wo.victims[r] += 1
        for j in range(width):
            wo.freed[r, j] += sc.give[ma.cls[m], j]
        holder = wo.claim[m]
        priority = ro.priority[r]
        voluntary = False
        if holder >= 0:
            priority = ro.priority[holder]
            _lose(ma, ro, fa, wo, holder, m)
        elif fa.reported[ma.cluster[m]]:
            voluntary = True
        else:
            priority = ids.priority[ma.stamp[m]]
        if ma.cluster[m] == ro.cluster[r]:
            stamp_new(ro, wo, r, m)
            wo.claim[m] = r
            wo.preempt[m] = -1
            wo.moved[m] = 1
            subtract(sc, ma.cls[m], wo.left[r], width, 1)
            continue
        if voluntary and vi.budget[ma.cluster[m]] > 0:
            vi.budget[ma.cluster[m]] -= 1
        wo.turn[m] = next_turn(wo)
        wo.grace[m] = _VOLUNTARY if voluntary else grace_of(ro.priority[r] - priority)


@inner
def _lose(ma: MachineArrays, ro: Rows, fa: Facts, wo: Work, holder: int, m: int) -> None:
    """The holder's claim ends. What it lacks now is the next cycle's business, not this phase's."""
    unname(ma, ro, wo, holder, m)
    wo.claim[m] = -1
    if wo.held[m]:
        wo.held[m] = 0
    else:
        wo.lost[m] = holder
        count_claim(ma, ro, fa, wo, holder, m, -1)


@jit
def any_unmet(ro: Rows, wo: Work, rows: int) -> bool:
    """Something is left for this phase to do."""
    for r in range(rows):
        if not satisfied(ro, wo, r) and not ro.blocked[r]:
            return True
    return False
