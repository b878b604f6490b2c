"""Credit: every row first claims what its cluster already has.

Round one gives rows the machines stamped for them; round two, what is left in the cluster, is in
`loose`. Most rows need every machine they hold: those are recognised without ordering anything.
An Idle machine that was made or freed for a plain row counts there as it did while it was Creating,
and is taken with the claim (ADR 0134).
"""

from __future__ import annotations

import numpy as np

from bigfleet.decision.kernels.amounts import covered, fits, in_domain, look_at, reduces, subtract
from bigfleet.decision.kernels.classify import counting_cluster, penalty_rank
from bigfleet.decision.kernels.index_sort import sort_index
from bigfleet.decision.kernels.layout import (
    CONFIGURED,
    CONFIGURING,
    COVERS_UNIT,
    I32,
    IDLE,
    ClassArrays,
    Facts,
    Holdings,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.spread import count_claim, count_claims
from bigfleet.decision.kernels.stamps import KEEPS_NUMBER, name_claim, next_turn, restamp, unname
from bigfleet.decision.kernels.supply import suits
from bigfleet.jit.decorators import inner

_NEEDS_ALL, _HAS_SURPLUS, _UNKNOWN = 0, 1, 2
"""What a row needs of the machines that are stamped for it, whatever their order."""


@inner
def claim_exact(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int,
) -> None:  # fmt: skip
    """Round one: machines stamped for exactly this row."""
    lo, hi = ho.exact_at[r], ho.exact_at[r + 1]
    ready = _find_ready(ma, cl, ids, ro, fa, ho, wo, sc, r)
    if ready == 0:
        if lo == hi:
            return
        found = _claim_all(ma, cl, ro, fa, ho, wo, sc, r, lo, hi)
        if found == _NEEDS_ALL:
            return
        if found == _HAS_SURPLUS:
            claim_from(ma, cl, ids, ro, fa, wo, sc, r, ho.exact, lo, hi)
            return
    for i in range(lo, hi):
        sc.takes[ready + i - lo] = ho.exact[i]
    size = ready + hi - lo
    if not _claim_held(ma, cl, ids, ro, fa, wo, sc, r, size):
        claim_from(ma, cl, ids, ro, fa, wo, sc, r, sc.takes, 0, size)


@inner
def _find_ready(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int,
) -> int:  # fmt: skip
    """Idle machines made or freed for exactly this plain row, in ``sc.takes``; how many."""
    size = 0
    if ro.domain_key[r] >= 0 or ro.blocked[r] or len(ho.idle) == 0:
        return size
    for i in range(ro.members[r], ro.members[r + 1]):
        key = ids.key[ro.member[i]]
        for j in range(ho.idle_at[key], ho.idle_at[key + 1]):
            m = ho.idle[j]
            if ma.stamp[m] == ro.member[i] and wo.claim[m] < 0 and fits(ma, ro, fa, r, m):
                if suits(cl, ro, fa, sc, r, ma.cls[m]):
                    sc.takes[size] = m
                    size += 1
    return size


@inner
def _claim_held(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, sc: Scratch,
    r: int, listed: int,
) -> bool:  # fmt: skip
    """Claim all that is stamped for the row (``sc.takes``), or nothing where some is surplus.

    It is not as long as each machine is needed beside those that the row claimed before it,
    whatever has become of their states since.
    """
    size = 0
    for i in range(listed):
        m = sc.takes[i]
        if wo.claim[m] < 0 and fits(ma, ro, fa, r, m) and in_domain(ma, ro, fa, wo, r, m):
            look_at(cl, ro, fa, sc, r, ma.cls[m])
            sc.cand[size] = m
            size += 1
    # Where all are needed, or something is surplus in any case, the order decides nothing.
    needed = _needed(ma, ro, wo, sc, r, size)
    if needed == _HAS_SURPLUS:
        return False
    if needed == _UNKNOWN:
        _order_held(ma, cl, ids, ro, sc, r, size)
        if not _needs_each(ma, ro, wo, sc, r, size):
            return False
    for i in range(size):
        claim(ma, ids, ro, fa, wo, sc, r, sc.cand[i])
    return True


@inner
def _needs_each(ma: MachineArrays, ro: Rows, wo: Work, sc: Scratch, r: int, size: int) -> bool:
    """Each of ``sc.cand`` lowers the deficit that those before it leave."""
    width = ro.width[r]
    for j in range(width):
        sc.left[j] = wo.left[r, j]
    for i in range(size):
        c = ma.cls[sc.cand[i]]
        if covered(sc.left, width) or not reduces(sc, c, sc.left, width):
            return False
        subtract(sc, c, sc.left, width, 1)
    return True


@inner
def _order_held(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, sc: Scratch, r: int, size: int
) -> None:
    """Order ``sc.cand``: of before a shrink the most expensive last, then others by their stamps.

    The later ones stand in the order of their stamps whatever their state, because that is the
    order in which the row claimed them: what was needed after those before it still is.
    """
    for i in range(size):
        m = sc.cand[i]
        sequence = ma.sequence[m]
        if sequence < ro.shrunk_at[r]:
            state = ma.state[m]
            rank = 0 if state == CONFIGURED else (1 if state == CONFIGURING else 2)
            sc.k1[i] = rank if sc.give_flags[ma.cls[m]] & COVERS_UNIT else 4 + rank
            sc.k2[i] = cl.price[ma.cls[m]]
            sc.k3[i] = ((63 - penalty_rank(ma, ids, m)) << 32) | np.int64(ma.rank[m])
        else:
            sc.k1[i] = 8
            sc.k2[i] = sequence
            sc.k3[i] = ma.rank[m]
    _sort_cand(sc, size)


@inner
def _sort_cand(sc: Scratch, size: int) -> None:
    sort_index(sc.k1, sc.k2, sc.k3, sc.sorted, sc.spare, size)
    for i in range(size):
        sc.head[i] = sc.cand[sc.sorted[i]]
    for i in range(size):
        sc.cand[i] = sc.head[i]


@inner
def _claim_all(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, ho: Holdings, wo: Work, sc: Scratch,
    r: int, lo: int, hi: int,
) -> int:  # fmt: skip
    """The usual cases in few steps: a plain row that needs every machine it holds, or plainly not.

    Claims all or nothing; _UNKNOWN where anything has to be looked at more closely.
    """
    if ro.domain_key[r] >= 0 or ro.masks[r] < ro.masks[r + 1]:
        return _UNKNOWN
    width = ro.width[r]
    exact, cls, claims = ho.exact, ma.cls, wo.claim
    for j in range(width):
        sc.left[j] = sc.most[j] = 0
    last = -1
    least = np.int64(1) << 62
    for i in range(lo, hi):
        c = cls[exact[i]]
        if c != last:
            if not fa.matches[ro.own_match[r], c]:
                return _UNKNOWN
            if not look_at(cl, ro, fa, sc, r, c) & COVERS_UNIT:
                return _UNKNOWN
            least = min(least, sc.give[c, 0])
            for j in range(width):
                sc.most[j] = max(sc.most[j], sc.give[c, j])
            last = c
        for j in range(width):
            sc.left[j] += sc.give[c, j]
    # Without the smallest the first dimension is not covered, so whatever the order, all count.
    if width == 0 or least <= 0 or sc.left[0] - least >= wo.left[r, 0]:
        # Without the largest all are covered, so whatever the order, the last is not needed.
        for j in range(width):
            if sc.left[j] - sc.most[j] < wo.left[r, j]:
                return _UNKNOWN
        return _HAS_SURPLUS
    for i in range(lo, hi):
        m = exact[i]
        claims[m] = r
        wo.named[ma.stamp[m]] += 1
    if ro.spread[r] < ro.spread[r + 1]:
        count_claims(ma, ro, fa, wo, r, exact, lo, hi)
    for j in range(width):
        wo.left[r, j] -= sc.left[j]
    return _NEEDS_ALL


@inner
def claim_key(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int,
) -> None:  # fmt: skip
    """Round one, second part: stamps of the same key with another fingerprint."""
    if covered(wo.left[r], ro.width[r]):
        return
    untouched = True
    for j in range(ro.width[r]):
        untouched = untouched and wo.left[r, j] == ro.aggregate[r, j]
    size = 0
    for i in range(ro.members[r], ro.members[r + 1]):
        key = ids.key[ro.member[i]]
        for j in range(ho.key_at[key], ho.key_at[key + 1]):
            sc.takes[size] = ho.key[j]
            size += 1
        for j in range(fa.key_rows[key], fa.key_rows[key + 1]):
            other = fa.key_row[j]
            if other == r:
                continue
            for k in range(ho.exact_at[other], ho.exact_at[other + 1]):
                m = ho.exact[k]
                if wo.claim[m] < 0 and ids.key[ma.stamp[m]] == key:
                    sc.takes[size] = m
                    size += 1
    if size > 0:
        claim_from(ma, cl, ids, ro, fa, wo, sc, r, sc.takes, 0, size)
    # A row whose profile changed as a whole keeps its order; beside others these come last.
    for i in range(size if untouched else 0):
        if wo.claim[sc.takes[i]] == r:
            wo.turn[sc.takes[i]] = KEEPS_NUMBER


@inner
def claim_from(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, sc: Scratch,
    r: int, machines: I32, lo: int, hi: int,
) -> None:  # fmt: skip
    """Claim from a list while the deficit gets smaller: covering machines first, in order."""
    for wants_unit in range(1, -1, -1):
        if covered(wo.left[r], ro.width[r]):
            return
        size = 0
        for i in range(lo, hi):
            m = machines[i]
            if wo.claim[m] >= 0 or not fits(ma, ro, fa, r, m):
                continue
            if not in_domain(ma, ro, fa, wo, r, m):
                continue
            if bool(look_at(cl, ro, fa, sc, r, ma.cls[m]) & COVERS_UNIT) == bool(wants_unit):
                sc.cand[size] = m
                size += 1
        if size == 0:
            continue
        _put_in_order(ma, cl, ids, ro, sc, r, size)
        for i in range(size):
            m = sc.cand[i]
            if covered(wo.left[r], ro.width[r]):
                return
            if reduces(sc, ma.cls[m], wo.left[r], ro.width[r]):
                claim(ma, ids, ro, fa, wo, sc, r, m)


@inner
def keep_from(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, sc: Scratch,
    r: int, size: int,
) -> None:  # fmt: skip
    """Claim leaving machines back (``sc.takes``), and remember that their drains are called off."""
    claim_from(ma, cl, ids, ro, fa, wo, sc, r, sc.takes, 0, size)
    for i in range(size):
        m = sc.takes[i]
        if wo.claim[m] == r:
            wo.kept[m] = 1
            if wo.identity[m] < 0:
                wo.identity[m] = ma.stamp[m]
                wo.turn[m] = next_turn(wo)


@inner
def claim(
    ma: MachineArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, sc: Scratch, r: int, m: int
) -> None:
    """Count a machine that is already the cluster's, or was made for the row, for it."""
    exact = ma.stamp[m] >= 0 and ids.exact[ma.stamp[m]] == r
    if exact:
        name_claim(wo, ma.stamp[m])
    else:
        restamp(ma, ids, ro, wo, r, m)
    wo.claim[m] = r
    subtract(sc, ma.cls[m], wo.left[r], ro.width[r], 1)
    count_claim(ma, ro, fa, wo, r, m, 1)
    if ma.state[m] == IDLE:
        # It leaves the free ones. The stamp keeps its number, and so the row its order.
        wo.taken[m], wo.identity[m], wo.turn[m] = r, ma.stamp[m], KEEPS_NUMBER


@inner
def give_up_ready(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, rows: int,
) -> None:  # fmt: skip
    """Idle machines that rows counted are free again where an unmet row of higher priority may
    take them: it is for that row's turn to decide."""
    if len(ho.idle) == 0:
        return
    unmet = np.empty(rows, np.int32)
    size = 0
    for r in range(rows):
        # A gang that cannot be complete, or has not chosen yet, takes nothing from others for sure.
        hopeful = ro.domain_key[r] < 0 or wo.satisfiable[r]
        if hopeful and not ro.blocked[r] and not covered(wo.left[r], ro.width[r]):
            unmet[size] = r
            size += 1
    first = np.full(len(cl.price), -1, np.int32)
    for j in range(len(ho.idle) if size > 0 else 0):
        m = ho.idle[j]
        owner, c = wo.claim[m], ma.cls[m]
        if owner < 0:
            continue
        i = max(0, first[c])
        while i < size and ro.priority[unmet[i]] > ro.priority[owner]:
            if suits(cl, ro, fa, sc, unmet[i], c):
                if first[c] < 0:
                    first[c] = i
                if fits(ma, ro, fa, unmet[i], m):
                    _free_again(ma, cl, ro, fa, ho, wo, sc, owner, m)
                    break
            i += 1


@inner
def _free_again(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, ho: Holdings, wo: Work, sc: Scratch,
    r: int, m: int,
) -> None:  # fmt: skip
    """Undo the claim of an Idle machine."""
    c = ma.cls[m]
    unname(ma, ro, wo, r, m)
    wo.claim[m] = -1
    wo.taken[m] = -1
    look_at(cl, ro, fa, sc, r, c)
    subtract(sc, c, wo.left[r], ro.width[r], -1)
    count_claim(ma, ro, fa, wo, r, m, -1)
    wo.position[2 * c] = ho.bucket_at[2 * c]
    wo.stale[2 * c] = 1


@inner
def _needed(ma: MachineArrays, ro: Rows, wo: Work, sc: Scratch, r: int, size: int) -> int:
    """What the row needs of ``sc.cand`` whatever their order.

    Without the smallest it is not covered, so all count; or without the largest it still is.
    """
    surplus = True
    for j in range(ro.width[r]):
        total, least, most = 0, np.int64(1) << 62, 0
        for i in range(size):
            give = sc.give[ma.cls[sc.cand[i]], j]
            total += give
            least = min(least, give)
            most = max(most, give)
        if least > 0 and total - least < wo.left[r, j]:
            return _NEEDS_ALL
        surplus = surplus and total - most >= wo.left[r, j]
    return _HAS_SURPLUS if surplus else _UNKNOWN


@inner
def _put_in_order(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, sc: Scratch, r: int, size: int
) -> None:
    """Serving first; of before a shrink the most expensive last; later ones as they came."""
    for i in range(size):
        m = sc.cand[i]
        state = ma.state[m]
        rank = 0 if state == CONFIGURED else (1 if state == CONFIGURING else 2)
        sequence = ma.sequence[m] if ma.stamp[m] >= 0 else 0
        if sequence < ro.shrunk_at[r]:
            sc.k1[i] = 2 * rank
            sc.k2[i] = cl.price[ma.cls[m]]
            sc.k3[i] = ((63 - penalty_rank(ma, ids, m)) << 32) | np.int64(ma.rank[m])
        else:
            sc.k1[i] = 2 * rank + 1
            sc.k2[i] = sequence
            sc.k3[i] = ma.rank[m]
    _sort_cand(sc, size)


@inner
def hold_old_domains(
    ma: MachineArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work, r: int
) -> None:
    """A gang that moves keeps its old machines until the new ones serve."""
    key = ids.key[ro.member[ro.members[r]]]
    serving = covered(wo.left[r], ro.width[r])
    for pass_ in range(2):
        for j in range(fa.key_rows[key], fa.key_rows[key + 1]):
            other = fa.key_row[j]
            for k in range(ho.exact_at[other], ho.exact_at[other + 1]):
                m = ho.exact[k]
                if ids.key[ma.stamp[m]] == key:
                    serving = _hold_one(ma, ids, ro, fa, wo, r, m, pass_, serving)
        for k in range(ho.key_at[key], ho.key_at[key + 1]):
            serving = _hold_one(ma, ids, ro, fa, wo, r, ho.key[k], pass_, serving)
        if pass_ == 0 and serving:
            return


@inner
def _hold_one(
    ma: MachineArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, r: int, m: int, pass_: int,
    serving: bool,
) -> bool:  # fmt: skip
    if pass_ == 0:
        return serving and not (wo.claim[m] == r and ma.state[m] != CONFIGURED)
    if (
        wo.claim[m] < 0
        and counting_cluster(ma, ids, m) == ro.cluster[r]
        and fits(ma, ro, fa, r, m)
        and not in_domain(ma, ro, fa, wo, r, m)
    ):
        wo.claim[m] = r
        wo.held[m] = 1
    return serving
