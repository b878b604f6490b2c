"""The domain of a gang: chosen once per cycle, by one order over all domains."""

from __future__ import annotations

from bigfleet.decision.kernels.acquire import acquire, commit, give_back, note, take
from bigfleet.decision.kernels.amounts import covered, domain_of, fits, look_at, subtract
from bigfleet.decision.kernels.classify import owner_of
from bigfleet.decision.kernels.domains import (
    free_sums,
    limited_sums,
    limits_bind,
    might_yield,
    yield_sums,
)
from bigfleet.decision.kernels.exact import compare_fractions
from bigfleet.decision.kernels.layout import (
    I64,
    PINNED,
    Classes,
    Facts,
    Holdings,
    Identities,
    Machines,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.supply import available, suits
from bigfleet.model.columns.jit import inner

STAMPED, OTHER, OWNED = 0, 1, 2


@inner
def _put(
    ma: Machines, cl: Classes, ro: Rows, fa: Facts, sc: Scratch, r: int, m: int, part: int,
    sizes: I64,
) -> None:  # fmt: skip
    """Add one machine to its domain's part; ``sizes[0]`` counts the domains touched."""
    domain = domain_of(ma, fa, ro.domain_key[r], m)
    if domain < 0:
        return
    look_at(cl, ro, fa, sc, r, ma.cls[m])
    if sc.mark[domain] != sc.clock[0]:
        sc.mark[domain] = sc.clock[0]
        sc.dom_list[sizes[0]] = domain
        sizes[0] += 1
        sc.dom_count[domain] = 0
        for j in range(ro.width[r]):
            sc.dom_stamped[domain, j] = 0
            sc.dom_other[domain, j] = 0
            sc.dom_free[domain, j] = 0
    for j in range(ro.width[r]):
        give = sc.give[ma.cls[m], j]
        if part == STAMPED:
            sc.dom_stamped[domain, j] += give
        elif part == OTHER:
            sc.dom_other[domain, j] += give
        else:
            sc.dom_free[domain, j] += give
    sc.dom_count[domain] += 1
    sizes[1 + part] += 1


@inner
def holdings(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work,
    sc: Scratch, r: int, sizes: I64,
) -> None:  # fmt: skip
    """What is stamped for the gang in any state, and what else of the cluster it could credit."""
    sc.clock[0] += 1
    for i in range(len(sizes)):
        sizes[i] = 0
    key = ids.key[ro.member[ro.members[r]]]
    for i in range(fa.key_rows[key], fa.key_rows[key + 1]):
        other = fa.key_row[i]
        for j in range(ho.exact_at[other], ho.exact_at[other + 1]):
            m = ho.exact[j]
            if wo.claim[m] < 0 and ids.key[ma.stamp[m]] == key and fits(ma, ro, fa, r, m):
                _put(ma, cl, ro, fa, sc, r, m, STAMPED, sizes)
    for j in range(ho.key_at[key], ho.key_at[key + 1]):
        if wo.claim[ho.key[j]] < 0 and fits(ma, ro, fa, r, ho.key[j]):
            _put(ma, cl, ro, fa, sc, r, ho.key[j], STAMPED, sizes)
    for j in range(ho.idle_at[key], ho.idle_at[key + 1]):
        if fits(ma, ro, fa, r, ho.idle[j]):
            _put(ma, cl, ro, fa, sc, r, ho.idle[j], STAMPED, sizes)
    for j in range(ho.coming_at[key], ho.coming_at[key + 1]):
        if not wo.kept[ho.coming[j]] and fits(ma, ro, fa, r, ho.coming[j]):
            _put(ma, cl, ro, fa, sc, r, ho.coming[j], STAMPED, sizes)
    cluster = ro.cluster[r]
    for j in range(ho.loose_at[cluster], ho.loose_at[cluster + 1]):
        if _creditable(ma, cl, ids, ro, fa, wo, r, ho.loose[j], key):
            _put(ma, cl, ro, fa, sc, r, ho.loose[j], OTHER, sizes)


@inner
def _creditable(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, wo: Work, r: int, m: int,
    key: int,
) -> bool:  # fmt: skip
    """Unclaimed, of the cluster, not another gang's, and allowed for pinned demand."""
    if wo.claim[m] >= 0 or not fits(ma, ro, fa, r, m):
        return False
    if ro.interruption[r] == PINNED and cl.risky[ma.cls[m]]:
        return False
    stamp = ma.stamp[m]
    if stamp >= 0 and ids.key[stamp] == key:
        return False
    owner = owner_of(ids, stamp)
    return owner < 0 or ro.domain_key[owner] < 0


@inner
def choose(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work,
    sc: Scratch, r: int, planned: bool, sizes: I64,
) -> None:  # fmt: skip
    """Rank all domains; ``planned`` keeps off what earlier gangs have set aside.

    ``holdings`` has been called. Where machines stamped for the gang can be completed in place,
    no other domain can win, and only those domains are ranked.
    """
    wo.chosen[r] = 1
    _add_owned_idle(ma, cl, ids, ro, fa, ho, wo, sc, r, planned, sizes)
    if limits_bind(fa, wo):
        slot = limited_sums(ma, cl, ids, ro, fa, ho, wo, sc, r, planned)
    else:
        slot = free_sums(ma, cl, ids, ro, fa, ho, wo, sc, r)
    found = 0
    if sizes[1 + STAMPED] > 0:
        for i in range(sizes[0]):
            domain = sc.dom_list[i]
            if _any(sc.dom_stamped[domain], ro.width[r]):
                if _totals(ro, sc, r, slot, domain, False):
                    found = _insert(ro, fa, wo, sc, r, slot, domain, found, False)
    if found == 0:
        if _some_domain_covers(ro, sc, r, slot, sizes[0]):
            for i in range(sizes[0] + sc.slot_size[slot]):
                domain = _listed(sc, slot, i, sizes[0])
                if domain >= 0:
                    found = _insert(ro, fa, wo, sc, r, slot, domain, found, False)
        else:
            yield_sums(ma, cl, ids, ro, fa, sc, r)
            _without_mine(ma, cl, ids, ro, fa, ho, wo, sc, r, -1)
            for domain in range(fa.domain_count[ro.domain_key[r]]):
                if _present(sc, slot, domain):
                    found = _insert(ro, fa, wo, sc, r, slot, domain, found, True)
            _without_mine(ma, cl, ids, ro, fa, ho, wo, sc, r, 1)
    wo.domain[r] = wo.best[r, 0] if found > 0 else -1
    wo.satisfiable[r] = found > 0 and wo.best_ok[r, 0]


@inner
def _any(amounts: I64, width: int) -> bool:
    for j in range(width):
        if amounts[j] > 0:
            return True
    return False


@inner
def _add_owned_idle(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work,
    sc: Scratch, r: int, planned: bool, sizes: I64,
) -> None:  # fmt: skip
    """Idle machines stamped for other live rows, where this gang may take them."""
    key = ids.key[ro.member[ro.members[r]]]
    for j in range(len(ho.idle)):
        m = ho.idle[j]
        if ids.key[ma.stamp[m]] == key or not suits(cl, ro, fa, sc, r, ma.cls[m]):
            continue
        if fits(ma, ro, fa, r, m) and available(ma, ids, ro, fa, wo, r, m, planned):
            _put(ma, cl, ro, fa, sc, r, m, OWNED, sizes)


@inner
def _here(sc: Scratch, domain: int) -> bool:
    return bool(sc.mark[domain] == sc.clock[0])


@inner
def _listed(sc: Scratch, slot: int, i: int, touched: int) -> int:
    """Each domain where the gang has or could take anything, once: those touched, then those with
    something free. -1 for a place in the two lists that is none or comes again.
    """
    if i < touched:
        return sc.dom_list[i]
    domain = sc.slot_domain[slot, i - touched]
    return -1 if _here(sc, domain) or sc.sum_count[slot, domain] == 0 else domain


@inner
def _present(sc: Scratch, slot: int, domain: int) -> bool:
    """Anything is here, is free, or might yield."""
    if _here(sc, domain) or sc.sum_count[slot, domain] > 0:
        return True
    return bool(sc.yield_count[domain] > 0)


@inner
def _near(sc: Scratch, slot: int, domain: int, j: int) -> int:
    """What the gang can credit and freely take in a domain."""
    total = sc.sums[slot, domain, j]
    if _here(sc, domain):
        total += sc.dom_stamped[domain, j] + sc.dom_other[domain, j] + sc.dom_free[domain, j]
    return total


@inner
def _totals(ro: Rows, sc: Scratch, r: int, slot: int, domain: int, with_yields: bool) -> bool:
    """The domain covers the whole gang."""
    for j in range(ro.width[r]):
        total = _near(sc, slot, domain, j)
        if with_yields:
            total += sc.yields[domain, j]
        if total < ro.aggregate[r, j]:
            return False
    return True


@inner
def _some_domain_covers(ro: Rows, sc: Scratch, r: int, slot: int, touched: int) -> bool:
    for i in range(touched + sc.slot_size[slot]):
        domain = _listed(sc, slot, i, touched)
        if domain >= 0 and _totals(ro, sc, r, slot, domain, False):
            return True
    return False


@inner
def _without_mine(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work,
    sc: Scratch, r: int, sign: int,
) -> None:  # fmt: skip
    """What the gang can credit anyway is not counted a second time among what might yield."""
    key = ids.key[ro.member[ro.members[r]]]
    for i in range(fa.key_rows[key], fa.key_rows[key + 1]):
        other = fa.key_row[i]
        for j in range(ho.exact_at[other], ho.exact_at[other + 1]):
            m = ho.exact[j]
            if wo.claim[m] < 0 and ids.key[ma.stamp[m]] == key:
                _correct(ma, cl, ids, ro, fa, sc, r, m, sign)
    for j in range(ho.key_at[key], ho.key_at[key + 1]):
        if wo.claim[ho.key[j]] < 0:
            _correct(ma, cl, ids, ro, fa, sc, r, ho.key[j], sign)
    cluster = ro.cluster[r]
    for j in range(ho.loose_at[cluster], ho.loose_at[cluster + 1]):
        if _creditable(ma, cl, ids, ro, fa, wo, r, ho.loose[j], key):
            _correct(ma, cl, ids, ro, fa, sc, r, ho.loose[j], sign)


@inner
def _correct(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, sc: Scratch, r: int, m: int,
    sign: int,
) -> None:  # fmt: skip
    domain = domain_of(ma, fa, ro.domain_key[r], m)
    if domain >= 0 and might_yield(ma, cl, ids, ro, fa, sc, r, m):
        for j in range(ro.width[r]):
            sc.yields[domain, j] += sign * sc.give[ma.cls[m], j]
        sc.yield_count[domain] += sign


# -- ranking ---------------------------------------------------------------------------------


@inner
def _coverage(
    ro: Rows, sc: Scratch, r: int, slot: int, domain: int, part: int, capped: bool
) -> tuple[int, int]:
    """Worst demanded dimension as a fraction; part 0 stamped, 1 others, 2 near, 3 with yields."""
    top, bottom = 1, 0
    for j in range(ro.width[r]):
        amount = 0
        if part == 0:
            amount = sc.dom_stamped[domain, j] if _here(sc, domain) else 0
        elif part == 1:
            amount = sc.dom_other[domain, j] if _here(sc, domain) else 0
        else:
            amount = _near(sc, slot, domain, j)
            if part == 3:
                amount += sc.yields[domain, j]
        whole = ro.aggregate[r, j]
        if bottom == 0 or compare_fractions(amount, whole, top, bottom) < 0:
            top, bottom = amount, whole
    if bottom == 0 or (capped and top >= bottom):
        return 1, 1
    return top, bottom


@inner
def _category(ro: Rows, sc: Scratch, r: int, slot: int, domain: int, with_yields: bool) -> int:
    if _totals(ro, sc, r, slot, domain, False):
        return 0
    if with_yields and _totals(ro, sc, r, slot, domain, True):
        return 1
    return 2


@inner
def _precedes(
    ro: Rows, fa: Facts, sc: Scratch, r: int, slot: int, a: int, b: int, with_yields: bool
) -> bool:
    """Domain ``a`` before domain ``b`` in the order of section 4.3."""
    kind = _category(ro, sc, r, slot, a, with_yields)
    other = _category(ro, sc, r, slot, b, with_yields)
    if kind != other:
        return kind < other
    for part in range(2):
        n1, d1 = _coverage(ro, sc, r, slot, a, part, True)
        n2, d2 = _coverage(ro, sc, r, slot, b, part, True)
        sign = compare_fractions(n1, d1, n2, d2)
        if sign != 0:
            return sign > 0
    part = 2 if kind == 0 or not with_yields else 3
    n1, d1 = _coverage(ro, sc, r, slot, a, part, False)
    n2, d2 = _coverage(ro, sc, r, slot, b, part, False)
    sign = compare_fractions(n1, d1, n2, d2)
    if sign != 0:
        return sign < 0 if kind < 2 else sign > 0
    count_a, count_b = _count(sc, slot, a, part == 3), _count(sc, slot, b, part == 3)
    if count_a != count_b:
        return count_a > count_b
    rank = fa.domain_rank[ro.domain_key[r]]
    return bool(rank[a] < rank[b])


@inner
def _is_behind(
    ro: Rows, fa: Facts, sc: Scratch, r: int, slot: int, domain: int, other: int
) -> bool:
    """A domain with nothing but free machines comes after another such one: the usual answer in
    few steps, for gangs that count whole units. False where a closer look is needed.
    """
    if ro.width[r] != 1 or _here(sc, domain) or _here(sc, other):
        return False
    mine, its, whole = sc.sums[slot, domain, 0], sc.sums[slot, other, 0], ro.aggregate[r, 0]
    if mine != its:
        # Of those that cover the smallest comes first, before the largest of those that do not.
        return bool(its >= whole and mine > its) or bool(mine < whole and mine < its)
    if sc.sum_count[slot, domain] != sc.sum_count[slot, other]:
        return bool(sc.sum_count[slot, domain] < sc.sum_count[slot, other])
    rank = fa.domain_rank[ro.domain_key[r]]
    return bool(rank[domain] > rank[other])


@inner
def _count(sc: Scratch, slot: int, domain: int, with_yields: bool) -> int:
    count = sc.sum_count[slot, domain]
    if _here(sc, domain):
        count += sc.dom_count[domain]
    if with_yields:
        count += sc.yield_count[domain]
    return count


@inner
def _insert(
    ro: Rows, fa: Facts, wo: Work, sc: Scratch, r: int, slot: int, domain: int, found: int,
    with_yields: bool,
) -> int:  # fmt: skip
    """Keep the five best domains in order."""
    if found >= 5 and not with_yields and _is_behind(ro, fa, sc, r, slot, domain, wo.best[r, 4]):
        return found + 1
    size = min(found, 5)
    place = size
    while place > 0 and _precedes(ro, fa, sc, r, slot, domain, wo.best[r, place - 1], with_yields):
        place -= 1
    if place < 5:
        for i in range(min(size, 4), place, -1):
            wo.best[r, i] = wo.best[r, i - 1]
            wo.best_mille[r, i] = wo.best_mille[r, i - 1]
            wo.best_ok[r, i] = wo.best_ok[r, i - 1]
        kind = _category(ro, sc, r, slot, domain, with_yields)
        part = 2 if kind == 0 or not with_yields else 3
        top, bottom = _coverage(ro, sc, r, slot, domain, part, True)
        wo.best[r, place] = domain
        wo.best_mille[r, place] = int(1000.0 * (float(top) / float(bottom)))
        wo.best_ok[r, place] = kind < 2
    return found + 1


# -- taking ----------------------------------------------------------------------------------


@inner
def gang_takes(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work,
    sc: Scratch, r: int, planned: bool,
) -> tuple[int, int]:  # fmt: skip
    """All the gang lacks in its domain, or nothing; ``sc.left`` is then what is left over."""
    width = ro.width[r]
    if planned:
        domain = wo.domain[r]
        for j in range(width):
            sc.left[j] = ro.aggregate[r, j]
            if _here(sc, domain):
                sc.left[j] -= sc.dom_stamped[domain, j] + sc.dom_other[domain, j]
        key = ids.key[ro.member[ro.members[r]]]
        for j in range(ho.idle_at[key], ho.idle_at[key + 1]):
            m = ho.idle[j]
            if fits(ma, ro, fa, r, m) and domain_of(ma, fa, ro.domain_key[r], m) == domain:
                look_at(cl, ro, fa, sc, r, ma.cls[m])
                subtract(sc, ma.cls[m], sc.left, width, -1)
    else:
        for j in range(width):
            sc.left[j] = wo.left[r, j]
        _subtract_coming(ma, cl, ids, ro, fa, ho, wo, sc, r)
    takes, heads = acquire(ma, cl, ids, ro, fa, ho, wo, sc, r, planned)
    if planned or not covered(sc.left, width):
        for t in range(takes):
            take(ma, cl, ro, fa, wo, r, sc.takes[t], -1)
        if not covered(sc.left, width):
            takes = 0
    return takes, heads


@inner
def _subtract_coming(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work,
    sc: Scratch, r: int,
) -> None:  # fmt: skip
    """What is leaving or Draining for the gang in its domain counts as completing it."""
    key = ids.key[ro.member[ro.members[r]]]
    for j in range(ho.coming_at[key], ho.coming_at[key + 1]):
        m = ho.coming[j]
        if wo.kept[m] or not fits(ma, ro, fa, r, m):
            continue
        if domain_of(ma, fa, ro.domain_key[r], m) == wo.domain[r]:
            look_at(cl, ro, fa, sc, r, ma.cls[m])
            subtract(sc, ma.cls[m], sc.left, ro.width[r], 1)


@inner
def choose_in_credit(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work,
    sc: Scratch, r: int, sizes: I64,
) -> None:  # fmt: skip
    """A gang with something to credit chooses now; one with nothing chooses at its turn."""
    holdings(ma, cl, ids, ro, fa, ho, wo, sc, r, sizes)
    if sizes[1 + STAMPED] + sizes[1 + OTHER] == 0:
        return
    choose(ma, cl, ids, ro, fa, ho, wo, sc, r, True, sizes)
    if wo.domain[r] >= 0:
        takes, _ = gang_takes(ma, cl, ids, ro, fa, ho, wo, sc, r, True)
        for t in range(takes):
            wo.aside[sc.takes[t]] = 1
            note(wo, sc.takes[t])


@inner
def serve_gang(
    ma: Machines, cl: Classes, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work,
    sc: Scratch, r: int, sizes: I64,
) -> None:  # fmt: skip
    """A gang's turn: choose if it has not, then take all it lacks or none."""
    if not wo.chosen[r] and not covered(wo.left[r], ro.width[r]):
        holdings(ma, cl, ids, ro, fa, ho, wo, sc, r, sizes)
        choose(ma, cl, ids, ro, fa, ho, wo, sc, r, False, sizes)
    if wo.domain[r] >= 0:
        takes, heads = gang_takes(ma, cl, ids, ro, fa, ho, wo, sc, r, False)
        takes = give_back(ma, cl, ro, fa, wo, sc, r, takes, heads)
        commit(ma, ro, wo, sc, r, takes)
