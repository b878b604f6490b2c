"""The domain of a gang: chosen once per cycle, by one order over all domains."""

from __future__ import annotations

from bigfleet.decision.kernels.acquire import acquire, commit, give_back, note
from bigfleet.decision.kernels.amounts import covered, domain_of, fits, look_at, subtract
from bigfleet.decision.kernels.classify import owner_of
from bigfleet.decision.kernels.domain_order import (
    covers,
    here,
    insert,
    listed,
    present,
    some_domain_covers,
)
from bigfleet.decision.kernels.domains import free_sums, limited_sums, limits_bind
from bigfleet.decision.kernels.layout import (
    I64,
    PINNED,
    PLACE_CLASS,
    PLACE_COUNT,
    PLACE_CREDITABLE,
    PLACE_DOMAIN,
    PLACE_HELD_AT,
    ClassArrays,
    Facts,
    Holdings,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.leftovers_by_domain import make_places
from bigfleet.decision.kernels.preemptible_sums import (
    add_yield,
    holds_in_domain,
    might_yield,
    tells_by_domain,
    yield_sums,
)
from bigfleet.decision.kernels.supply import available, suits, use_machine
from bigfleet.jit.decorators import inner

STAMPED, OTHER, OWNED = 0, 1, 2


@inner
def _put(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, sc: Scratch, r: int, m: int, part: int,
    sizes: I64,
) -> None:  # fmt: skip
    """Add one machine to its domain's part; ``sizes[0]`` counts the domains touched."""
    domain = domain_of(ma, fa, ro.domain_key[r], m)
    if domain >= 0:
        _put_many(cl, ro, fa, sc, r, domain, ma.cls[m], part, 1, sizes)


@inner
def _put_many(
    cl: ClassArrays, ro: Rows, fa: Facts, sc: Scratch, r: int, domain: int, c: int, part: int,
    count: int, sizes: I64,
) -> None:  # fmt: skip
    look_at(cl, ro, fa, sc, r, c)
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
        give = count * sc.give[c, j]
        if part == STAMPED:
            sc.dom_stamped[domain, j] += give
        elif part == OTHER:
            sc.dom_other[domain, j] += give
        else:
            sc.dom_free[domain, j] += give
    sc.dom_count[domain] += count
    sizes[1 + part] += count


@inner
def holdings(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, sizes: I64,
) -> None:  # fmt: skip
    """What is stamped for the gang in any state, and what else of the cluster it could credit."""
    sc.clock[0] += 1
    for i in range(len(sizes)):
        sizes[i] = 0
    key = ids.key[ro.member[ro.members[r]]]
    others = _put_others(ma, cl, ids, ro, fa, ho, wo, sc, r, key, sizes)
    for i in range(fa.key_rows[key], fa.key_rows[key + 1]):
        other = fa.key_row[i]
        for j in range(ho.exact_at[other], ho.exact_at[other + 1]):
            m = ho.exact[j]
            if wo.claim[m] < 0 and ids.key[ma.stamp[m]] == key and fits(ma, ro, fa, r, m):
                _put(ma, cl, ro, fa, sc, r, m, STAMPED, sizes)
                if others and _in_places(cl, ro, r, other, ma.cls[m]):
                    _take_out(ma, cl, ro, fa, sc, r, m, sizes)
    first = ids.first[key]
    for j in range(ho.key_at[key], ho.key_at[key + 1]):
        m = ho.key[j]
        if wo.claim[m] < 0 and fits(ma, ro, fa, r, m):
            _put(ma, cl, ro, fa, sc, r, m, STAMPED, sizes)
            if others and _in_places(cl, ro, r, first, ma.cls[m]):
                _take_out(ma, cl, ro, fa, sc, r, m, sizes)
    for j in range(ho.idle_at[key], ho.idle_at[key + 1]):
        if _may_take_again(ma, ro, fa, r, ho.idle[j]):
            _put(ma, cl, ro, fa, sc, r, ho.idle[j], STAMPED, sizes)
    for j in range(ho.coming_at[key], ho.coming_at[key + 1]):
        if not wo.kept[ho.coming[j]] and fits(ma, ro, fa, r, ho.coming[j]):
            _put(ma, cl, ro, fa, sc, r, ho.coming[j], STAMPED, sizes)


@inner
def _in_places(cl: ClassArrays, ro: Rows, r: int, owner: int, c: int) -> bool:
    """A machine stamped for the gang was counted among others: a plain row, folded, owns it too."""
    return ro.domain_key[owner] < 0 and not (ro.interruption[r] == PINNED and cl.risky[c])


@inner
def _take_out(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, sc: Scratch, r: int, m: int, sizes: I64
) -> None:
    """What is stamped for the gang does not count among others as well."""
    domain = domain_of(ma, fa, ro.domain_key[r], m)
    if domain >= 0:
        _put_many(cl, ro, fa, sc, r, domain, ma.cls[m], OTHER, -1, sizes)


@inner
def _put_others(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, key: int, sizes: I64,
) -> bool:  # fmt: skip
    """Add what else the gang could credit; whether by places, its own stamps included."""
    cluster, domain_key = ro.cluster[r], ro.domain_key[r]
    if not tells_by_domain(ro, fa, r):
        for j in range(ho.loose_at[cluster], ho.loose_at[cluster + 1]):
            if _creditable(ma, cl, ids, ro, fa, wo, r, ho.loose[j], key):
                _put(ma, cl, ro, fa, sc, r, ho.loose[j], OTHER, sizes)
        return False
    make_places(ma, ids, ro, fa, ho, wo, sc, domain_key)
    for p in range(ho.place_at[domain_key, cluster], ho.place_at[domain_key, cluster + 1]):
        domain, c = ho.place[p, PLACE_DOMAIN], ho.place[p, PLACE_CLASS]
        if _creditable_place(cl, ro, fa, ho, r, p) and holds_in_domain(ro, r, domain):
            _put_many(cl, ro, fa, sc, r, domain, c, OTHER, ho.place[p, PLACE_COUNT], sizes)
    return True


@inner
def _creditable_place(cl: ClassArrays, ro: Rows, fa: Facts, ho: Holdings, r: int, p: int) -> bool:
    c = ho.place[p, PLACE_CLASS]
    if not ho.place[p, PLACE_CREDITABLE] or not fa.matches[ro.own_match[r], c]:
        return False
    return not (ro.interruption[r] == PINNED and cl.risky[c])


@inner
def _creditable(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, r: int,
    m: int, key: int,
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
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, planned: bool, sizes: I64,
) -> None:  # fmt: skip
    """Rank all domains; ``planned`` keeps off what earlier gangs have set aside.

    ``holdings`` has been called. Where machines stamped for the gang can be completed in place,
    no domain that they cover nothing of can win, and only the others are ranked.
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
            if _all_given(sc.dom_stamped[domain], ro.width[r]):
                if covers(ro, sc, r, slot, domain, False):
                    found = insert(ro, fa, wo, sc, r, slot, domain, found, False)
    if found == 0:
        if some_domain_covers(ro, sc, r, slot, sizes[0]):
            for i in range(sizes[0] + sc.slot_size[slot]):
                domain = listed(sc, slot, i, sizes[0])
                if domain >= 0:
                    found = insert(ro, fa, wo, sc, r, slot, domain, found, False)
        else:
            yield_sums(ma, cl, ids, ro, fa, sc, r)
            _without_mine(ma, cl, ids, ro, fa, ho, wo, sc, r, -1)
            for domain in range(fa.domain_count[ro.domain_key[r]]):
                if present(sc, slot, domain):
                    found = insert(ro, fa, wo, sc, r, slot, domain, found, True)
            _without_mine(ma, cl, ids, ro, fa, ho, wo, sc, r, 1)
    wo.domain[r] = wo.best[r, 0] if found > 0 else -1
    wo.satisfiable[r] = found > 0 and wo.best_ok[r, 0]


@inner
def _may_take_again(ma: MachineArrays, ro: Rows, fa: Facts, r: int, m: int) -> bool:
    """An Idle machine that is stamped for the gang still suits it as a new one."""
    return bool(fa.matches[ro.match[r], ma.cls[m]]) and fits(ma, ro, fa, r, m)


@inner
def _all_given(amounts: I64, width: int) -> bool:
    """Something of every demanded dimension: coverage, which is that of the worst, is positive."""
    for j in range(width):
        if amounts[j] <= 0:
            return False
    return width > 0


@inner
def _add_owned_idle(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, planned: bool, sizes: I64,
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
def _without_mine(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, sign: int,
) -> None:  # fmt: skip
    """What the gang can credit anyway is not counted a second time among what might yield.

    What carries its key but no row's fingerprint belongs to the first row of that key, which is no
    lower than this one: it never yields.
    """
    key, domain_key = ids.key[ro.member[ro.members[r]]], ro.domain_key[r]
    by_places = tells_by_domain(ro, fa, r)
    for i in range(fa.key_rows[key], fa.key_rows[key + 1]):
        other = fa.key_row[i]
        if by_places and ro.domain_key[other] < 0:
            continue
        for j in range(ho.exact_at[other], ho.exact_at[other + 1]):
            m = ho.exact[j]
            if wo.claim[m] < 0 and ids.key[ma.stamp[m]] == key:
                _correct(ma, cl, ids, ro, fa, sc, r, m, sign)
    cluster = ro.cluster[r]
    if by_places:
        for p in range(ho.place_at[domain_key, cluster], ho.place_at[domain_key, cluster + 1]):
            _correct_place(cl, ro, fa, ho, sc, r, p, sign)
        return
    for j in range(ho.loose_at[cluster], ho.loose_at[cluster + 1]):
        if _creditable(ma, cl, ids, ro, fa, wo, r, ho.loose[j], key):
            _correct(ma, cl, ids, ro, fa, sc, r, ho.loose[j], sign)


@inner
def _correct(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, sc: Scratch, r: int,
    m: int, sign: int,
) -> None:  # fmt: skip
    domain = domain_of(ma, fa, ro.domain_key[r], m)
    if domain >= 0 and might_yield(ma, cl, ids, ro, fa, sc, r, m):
        add_yield(ro, sc, r, domain, ma.cls[m], sign)


@inner
def _correct_place(
    cl: ClassArrays, ro: Rows, fa: Facts, ho: Holdings, sc: Scratch, r: int, p: int, sign: int
) -> None:
    domain, c = ho.place[p, PLACE_DOMAIN], ho.place[p, PLACE_CLASS]
    if ho.place[p, PLACE_HELD_AT] >= ro.priority[r] or not _creditable_place(cl, ro, fa, ho, r, p):
        return
    if suits(cl, ro, fa, sc, r, c) and holds_in_domain(ro, r, domain):
        add_yield(ro, sc, r, domain, c, sign * ho.place[p, PLACE_COUNT])


# -- taking ----------------------------------------------------------------------------------


@inner
def gang_takes(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, planned: bool,
) -> int:  # fmt: skip
    """All the gang lacks in its domain, or nothing; ``sc.left`` is then what is left over."""
    width = ro.width[r]
    if planned:
        domain = wo.domain[r]
        for j in range(width):
            sc.left[j] = ro.aggregate[r, j]
            if here(sc, domain):
                sc.left[j] -= sc.dom_stamped[domain, j] + sc.dom_other[domain, j]
        key = ids.key[ro.member[ro.members[r]]]
        for j in range(ho.idle_at[key], ho.idle_at[key + 1]):
            m = ho.idle[j]
            if not _may_take_again(ma, ro, fa, r, m):
                continue
            if domain_of(ma, fa, ro.domain_key[r], m) == domain:
                look_at(cl, ro, fa, sc, r, ma.cls[m])
                subtract(sc, ma.cls[m], sc.left, width, -1)
    else:
        for j in range(width):
            sc.left[j] = wo.left[r, j]
        _subtract_coming(ma, cl, ids, ro, fa, ho, wo, sc, r)
    takes = acquire(ma, cl, ids, ro, fa, ho, wo, sc, r, planned)
    if planned or not covered(sc.left, width):
        for t in range(takes):
            use_machine(ma, cl, ro, fa, wo, r, sc.takes[t], -1)
        if not covered(sc.left, width):
            takes = 0
    return takes


@inner
def _subtract_coming(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int,
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
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, sizes: I64,
) -> None:  # fmt: skip
    """A gang with something to credit chooses now; one with nothing chooses at its turn."""
    holdings(ma, cl, ids, ro, fa, ho, wo, sc, r, sizes)
    if sizes[1 + STAMPED] + sizes[1 + OTHER] == 0:
        return
    choose(ma, cl, ids, ro, fa, ho, wo, sc, r, True, sizes)
    if wo.domain[r] >= 0:
        takes = gang_takes(ma, cl, ids, ro, fa, ho, wo, sc, r, True)
        for t in range(takes):
            wo.aside[sc.takes[t]] = 1
            note(wo, sc.takes[t])


@inner
def serve_gang(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, sizes: I64,
) -> None:  # fmt: skip
    """A gang's turn: choose if it has not, then take all it lacks or none."""
    if not wo.chosen[r] and not covered(wo.left[r], ro.width[r]):
        holdings(ma, cl, ids, ro, fa, ho, wo, sc, r, sizes)
        choose(ma, cl, ids, ro, fa, ho, wo, sc, r, False, sizes)
    if wo.domain[r] >= 0:
        takes = gang_takes(ma, cl, ids, ro, fa, ho, wo, sc, r, False)
        takes = give_back(ma, cl, ro, fa, wo, sc, r, takes)
        commit(ma, ro, wo, sc, r, takes)
