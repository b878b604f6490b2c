"""Credit: every row first claims what its cluster already has.

Round one gives rows the machines stamped for them; round two, what is left in the cluster, is in
`loose`. Most rows need every machine they hold: those are recognised without ordering anything.
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
from bigfleet.decision.kernels.stamps import name_claim, restamp
from bigfleet.jit.decorators import inner


@inner
def claim_exact(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int,
) -> None:  # fmt: skip
    """Round one: machines stamped for exactly this row."""
    lo, hi = ho.exact_at[r], ho.exact_at[r + 1]
    if lo < hi and not _claim_all(ma, cl, ro, fa, ho, wo, sc, r, lo, hi):
        claim_from(ma, cl, ids, ro, fa, wo, sc, r, ho.exact, lo, hi)


@inner
def _claim_all(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, ho: Holdings, wo: Work, sc: Scratch,
    r: int, lo: int, hi: int,
) -> bool:  # fmt: skip
    """The usual case in few steps: a plain row that needs every machine it holds.

    Claims all or nothing; False where anything has to be looked at more closely.
    """
    if ro.domain_key[r] >= 0 or ro.masks[r] < ro.masks[r + 1]:
        return False
    width = ro.width[r]
    exact, cls, claims = ho.exact, ma.cls, wo.claim
    for j in range(width):
        sc.left[j] = 0
    last = -1
    least = np.int64(1) << 62
    for i in range(lo, hi):
        c = cls[exact[i]]
        if c != last:
            if not fa.matches[ro.own_match[r], c]:
                return False
            if not look_at(cl, ro, fa, sc, r, c) & COVERS_UNIT:
                return False
            least = min(least, sc.give[c, 0])
            last = c
        for j in range(width):
            sc.left[j] += sc.give[c, j]
    # Without the smallest the first dimension is not covered, so whatever the order, all count.
    if width == 0 or least <= 0 or sc.left[0] - least >= wo.left[r, 0]:
        return False
    for i in range(lo, hi):
        m = exact[i]
        claims[m] = r
        wo.named[ma.stamp[m]] += 1
    if ro.spread[r] < ro.spread[r + 1]:
        count_claims(ma, ro, fa, wo, r, exact, lo, hi)
    for j in range(width):
        wo.left[r, j] -= sc.left[j]
    return True


@inner
def claim_key(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int,
) -> None:  # fmt: skip
    """Round one, second part: stamps of the same key with another fingerprint."""
    if covered(wo.left[r], ro.width[r]):
        return
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
        # Where all are needed the order decides nothing but which member of a fold each is for.
        if ro.members[r + 1] - ro.members[r] > 1 or not _needs_all(ma, ro, wo, sc, r, size):
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
        if wo.claim[sc.takes[i]] == r:
            wo.kept[sc.takes[i]] = 1


@inner
def claim(
    ma: MachineArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, sc: Scratch, r: int, m: int
) -> None:
    """Count a machine that is already the cluster's for a row."""
    exact = ma.stamp[m] >= 0 and ids.exact[ma.stamp[m]] == r
    if exact:
        name_claim(wo, ma.stamp[m])
    else:
        restamp(ma, ids, ro, wo, r, m)
    wo.claim[m] = r
    subtract(sc, ma.cls[m], wo.left[r], ro.width[r], 1)
    count_claim(ma, ro, fa, wo, r, m, 1)


@inner
def _needs_all(ma: MachineArrays, ro: Rows, wo: Work, sc: Scratch, r: int, size: int) -> bool:
    """Every candidate is needed whatever the order: without the smallest, it is not covered."""
    for j in range(ro.width[r]):
        total, least = 0, np.int64(1) << 62
        for i in range(size):
            give = sc.give[ma.cls[sc.cand[i]], j]
            total += give
            least = min(least, give)
        if least > 0 and total - least < wo.left[r, j]:
            return True
    return False


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
    sort_index(sc.k1, sc.k2, sc.k3, sc.sorted, sc.spare, size)
    for i in range(size):
        sc.head[i] = sc.cand[sc.sorted[i]]
    for i in range(size):
        sc.cand[i] = sc.head[i]


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
