"""What might yield to a gang, per domain: excess, and what strictly lower needs hold.

Gangs that find no place ask for this in every cycle. So machines that are alike to all gangs under
one domain key (domain, class, and the priority they yield to) are counted together once a cycle,
and a gang looks at these groups. One that names values of other topology columns looks at machines.
"""

from __future__ import annotations

from bigfleet.decision.kernels.amounts import domain_of, fits
from bigfleet.decision.kernels.classify import owner_of
from bigfleet.decision.kernels.layout import (
    CONFIGURED,
    LEAVING,
    UNUSABLE,
    ClassArrays,
    Facts,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
)
from bigfleet.decision.kernels.supply import suits
from bigfleet.jit.decorators import inner

_ALWAYS, _NEVER = -(1 << 40), 1 << 40
"""Below and above every priority: yields to all, to none."""
_TYPE, _PRIORITY, _KEY, _SIZE = range(4)
"""In ``yield_type``: whom the sums are for; which domain key has groups, and how many."""
_DOMAIN, _CLASS, _HELD_AT, _COUNT, _NEXT = range(5)
"""In ``groups``."""


@inner
def held_at(ma: MachineArrays, ids: Identities, ro: Rows, fa: Facts, m: int) -> int:
    """The priority above which a machine yields."""
    if ma.state[m] != CONFIGURED or ma.flags[m] & (UNUSABLE | LEAVING):
        return _NEVER
    stamp = ma.stamp[m]
    owner = owner_of(ids, stamp)
    if owner >= 0:
        return ro.priority[owner]
    cluster = ma.cluster[m]
    if cluster >= 0 and fa.reported[cluster]:
        return _ALWAYS
    return ids.priority[stamp] if stamp >= 0 else _NEVER


@inner
def might_yield(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, sc: Scratch, r: int,
    m: int,
) -> bool:  # fmt: skip
    """Excess, or held by a need that is strictly lower: what phase 2 may be able to take."""
    if held_at(ma, ids, ro, fa, m) >= ro.priority[r]:
        return False
    return suits(cl, ro, fa, sc, r, ma.cls[m]) and fits(ma, ro, fa, r, m)


@inner
def yield_sums(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, sc: Scratch, r: int
) -> None:
    """What might yield per domain for this type of gang and priority; kept until another asks."""
    if sc.yield_type[_TYPE] == ro.gang_type[r] and sc.yield_type[_PRIORITY] == ro.priority[r]:
        return
    for d in range(len(sc.yield_count)):
        sc.yield_count[d] = 0
        for j in range(sc.yields.shape[1]):
            sc.yields[d, j] = 0
    if tells_by_domain(ro, fa, r):
        _add_groups(ma, cl, ids, ro, fa, sc, r)
    else:
        for m in ma.order:
            if ma.state[m] == CONFIGURED and might_yield(ma, cl, ids, ro, fa, sc, r, m):
                domain = domain_of(ma, fa, ro.domain_key[r], m)
                if domain >= 0:
                    add_yield(ro, sc, r, domain, ma.cls[m], 1)
    sc.yield_type[_TYPE] = ro.gang_type[r]
    sc.yield_type[_PRIORITY] = ro.priority[r]


@inner
def add_yield(ro: Rows, sc: Scratch, r: int, domain: int, c: int, count: int) -> None:
    for j in range(ro.width[r]):
        sc.yields[domain, j] += count * sc.give[c, j]
    sc.yield_count[domain] += count


@inner
def tells_by_domain(ro: Rows, fa: Facts, r: int) -> bool:
    """Class and domain tell whether a machine holds all requirements of the gang."""
    column = fa.domain_column[ro.domain_key[r]]
    for i in range(ro.masks[r], ro.masks[r + 1]):
        if ro.mask_column[ro.mask[i]] != column:
            return False
    return True


@inner
def holds_in_domain(ro: Rows, r: int, domain: int) -> bool:
    """Machines of a domain hold what the gang asks of its column; after ``tells_by_domain``."""
    for i in range(ro.masks[r], ro.masks[r + 1]):
        if not ro.mask_value[ro.mask[i], domain + 1]:
            return False
    return True


@inner
def _add_groups(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, sc: Scratch, r: int
) -> None:
    if sc.yield_type[_KEY] != ro.domain_key[r]:
        _group(ma, ids, ro, fa, sc, ro.domain_key[r])
    for g in range(sc.yield_type[_SIZE]):
        domain, c = sc.groups[g, _DOMAIN], sc.groups[g, _CLASS]
        if sc.groups[g, _HELD_AT] >= ro.priority[r] or not suits(cl, ro, fa, sc, r, c):
            continue
        if holds_in_domain(ro, r, domain):
            add_yield(ro, sc, r, domain, c, sc.groups[g, _COUNT])


@inner
def _group(ma: MachineArrays, ids: Identities, ro: Rows, fa: Facts, sc: Scratch, key: int) -> None:
    """Count machines by domain, class and the priority above which they yield."""
    size = 0
    for d in range(len(sc.group_head)):
        sc.group_head[d] = -1
    for m in ma.order:
        above = held_at(ma, ids, ro, fa, m)
        domain = domain_of(ma, fa, key, m)
        if above == _NEVER or domain < 0:
            continue
        before, g = -1, sc.group_head[domain]
        while g >= 0:
            if sc.groups[g, _CLASS] == ma.cls[m] and sc.groups[g, _HELD_AT] == above:
                break
            before, g = g, sc.groups[g, _NEXT]
        if g < 0:
            g = size
            size += 1
            sc.groups[g, _DOMAIN] = domain
            sc.groups[g, _CLASS] = ma.cls[m]
            sc.groups[g, _HELD_AT] = above
            sc.groups[g, _COUNT] = 0
        elif before >= 0:
            sc.groups[before, _NEXT] = sc.groups[g, _NEXT]
        # Neighbours are alike: the group that was met last is looked at first.
        if g != sc.group_head[domain]:
            sc.groups[g, _NEXT] = sc.group_head[domain]
            sc.group_head[domain] = g
        sc.groups[g, _COUNT] += 1
    sc.yield_type[_KEY] = key
    sc.yield_type[_SIZE] = size
