"""Which of two domains a gang prefers: the order of section 4.3, and the five best by it.

What a domain covers is in scratch (`gangs`, `domains`); here it is only compared.
"""

from __future__ import annotations

from bigfleet.decision.kernels.exact import compare_fractions
from bigfleet.decision.kernels.layout import Facts, Rows, Scratch, Work
from bigfleet.jit.decorators import inner


@inner
def here(sc: Scratch, domain: int) -> bool:
    return bool(sc.mark[domain] == sc.clock[0])


@inner
def listed(sc: Scratch, slot: int, i: int, touched: int) -> int:
    """Each domain where the gang has or could take anything, once: those touched, then those with
    something free. -1 for a place in the two lists that is none or comes again.
    """
    if i < touched:
        return sc.dom_list[i]
    domain = sc.slot_domain[slot, i - touched]
    return -1 if here(sc, domain) or sc.sum_count[slot, domain] == 0 else domain


@inner
def present(sc: Scratch, slot: int, domain: int) -> bool:
    """Anything is here, is free, or might yield."""
    if here(sc, domain) or sc.sum_count[slot, domain] > 0:
        return True
    return bool(sc.yield_count[domain] > 0)


@inner
def _near(sc: Scratch, slot: int, domain: int, j: int) -> int:
    """What the gang can credit and freely take in a domain."""
    total = sc.sums[slot, domain, j]
    if here(sc, domain):
        total += sc.dom_stamped[domain, j] + sc.dom_other[domain, j] + sc.dom_free[domain, j]
    return total


@inner
def covers(ro: Rows, sc: Scratch, r: int, slot: int, domain: int, with_yields: bool) -> bool:
    """The domain covers the whole gang."""
    for j in range(ro.width[r]):
        total = _near(sc, slot, domain, j)
        if with_yields:
            total += sc.yields[domain, j]
        if total < ro.aggregate[r, j]:
            return False
    return True


@inner
def some_domain_covers(ro: Rows, sc: Scratch, r: int, slot: int, touched: int) -> bool:
    for i in range(touched + sc.slot_size[slot]):
        domain = listed(sc, slot, i, touched)
        if domain >= 0 and covers(ro, sc, r, slot, domain, False):
            return True
    return False


@inner
def _coverage(
    ro: Rows, sc: Scratch, r: int, slot: int, domain: int, part: int, capped: bool
) -> tuple[int, int]:
    """Worst demanded dimension as a fraction; part 0 stamped, 1 others, 2 near, 3 with yields."""
    top, bottom = 1, 0
    for j in range(ro.width[r]):
        amount = 0
        if part == 0:
            amount = sc.dom_stamped[domain, j] if here(sc, domain) else 0
        elif part == 1:
            amount = sc.dom_other[domain, j] if here(sc, domain) else 0
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
    if covers(ro, sc, r, slot, domain, False):
        return 0
    if with_yields and covers(ro, sc, r, slot, domain, True):
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
    ro: Rows, fa: Facts, sc: Scratch, r: int, slot: int, domain: int, other: int, with_yields: bool
) -> bool:
    """A domain with nothing the gang has comes after another such one: the usual answer in few
    steps, for gangs that count whole units. False where a closer look is needed.
    """
    if ro.width[r] != 1 or here(sc, domain) or here(sc, other):
        return False
    mine, its, whole = sc.sums[slot, domain, 0], sc.sums[slot, other, 0], ro.aggregate[r, 0]
    count, others = sc.sum_count[slot, domain], sc.sum_count[slot, other]
    if with_yields:
        # No domain covers without: of these, too, the smallest that covers comes first.
        mine, its = mine + sc.yields[domain, 0], its + sc.yields[other, 0]
        count, others = count + sc.yield_count[domain], others + sc.yield_count[other]
    if mine != its:
        # Of those that cover the smallest comes first, before the largest of those that do not.
        return bool(its >= whole and mine > its) or bool(mine < whole and mine < its)
    if count != others:
        return bool(count < others)
    rank = fa.domain_rank[ro.domain_key[r]]
    return bool(rank[domain] > rank[other])


@inner
def _count(sc: Scratch, slot: int, domain: int, with_yields: bool) -> int:
    count = sc.sum_count[slot, domain]
    if here(sc, domain):
        count += sc.dom_count[domain]
    if with_yields:
        count += sc.yield_count[domain]
    return count


@inner
def insert(
    ro: Rows, fa: Facts, wo: Work, sc: Scratch, r: int, slot: int, domain: int, found: int,
    with_yields: bool,
) -> int:  # fmt: skip
    """Keep the five best domains in order."""
    if found >= 5 and _is_behind(ro, fa, sc, r, slot, domain, wo.best[r, 4], with_yields):
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
