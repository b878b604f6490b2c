"""What a machine of a class gives to a row, and what that does to the row's deficit.

A uniform row counts whole units; any other row counts each demanded resource. What a class gives
to a row never changes within a cycle, so it is computed once per row and class at hand.
"""

from __future__ import annotations

from bigfleet.decision.kernels.exact import compare_fractions, compare_products
from bigfleet.decision.kernels.layout import (
    COVERS_UNIT,
    I64,
    OFFERS_ALL,
    ClassArrays,
    Facts,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.jit.decorators import inner


@inner
def look_at(cl: ClassArrays, ro: Rows, fa: Facts, sc: Scratch, r: int, c: int) -> int:
    """Fill what class ``c`` gives to row ``r``; returns its flags."""
    if sc.give_row[c] == r:
        return sc.give_flags[c]
    over = fa.overhead[ro.cluster[r]]
    flags = COVERS_UNIT | OFFERS_ALL
    units = -1
    for d in range(len(over)):
        unit = ro.unit[r, d]
        if unit > 0:
            offer = max(0, cl.offers[c, d] - over[d])
            if offer < unit:
                flags &= ~COVERS_UNIT
            if units < 0 or offer // unit < units:
                units = offer // unit
    for j in range(ro.width[r]):
        if ro.uniform[r]:
            sc.give[c, j] = units
        else:
            d = ro.dims[r, j]
            sc.give[c, j] = max(0, cl.offers[c, d] - over[d])
        if sc.give[c, j] <= 0:
            flags &= ~OFFERS_ALL
    sc.give_row[c] = r
    sc.give_flags[c] = flags
    return flags


@inner
def covered(left: I64, width: int) -> bool:
    for j in range(width):
        if left[j] > 0:
            return False
    return True


@inner
def reduces(sc: Scratch, c: int, left: I64, width: int) -> bool:
    """A machine of the class makes the deficit smaller; ``look_at`` was called before."""
    for j in range(width):
        if left[j] > 0 and sc.give[c, j] > 0:
            return True
    return False


@inner
def subtract(sc: Scratch, c: int, left: I64, width: int, times: int) -> None:
    for j in range(width):
        left[j] -= times * sc.give[c, j]


@inner
def fits(ma: MachineArrays, ro: Rows, fa: Facts, r: int, m: int) -> bool:
    """The machine holds all requirements of the row."""
    return bool(fa.matches[ro.own_match[r], ma.cls[m]]) and holds_masks(ma, ro, r, m)


@inner
def holds_masks(ma: MachineArrays, ro: Rows, r: int, m: int) -> bool:
    """The machine holds what the row asks of topology columns."""
    for i in range(ro.masks[r], ro.masks[r + 1]):
        k = ro.mask[i]
        if not ro.mask_value[k, ma.columns[ro.mask_column[k], m] + 1]:
            return False
    return True


@inner
def domain_of(ma: MachineArrays, fa: Facts, key: int, m: int) -> int:
    """The machine's domain under a domain key, -1 for none."""
    column = fa.domain_column[key]
    if column >= 0:
        return ma.columns[column, m]
    return fa.domain_of_class[key, ma.cls[m]]


@inner
def in_domain(ma: MachineArrays, ro: Rows, fa: Facts, wo: Work, r: int, m: int) -> bool:
    """A plain row takes machines from anywhere, a gang only from its domain."""
    key = ro.domain_key[r]
    if key < 0:
        return True
    return wo.domain[r] >= 0 and domain_of(ma, fa, key, m) == wo.domain[r]


@inner
def worst_share(give: I64, left: I64, width: int) -> tuple[int, int]:
    """Share of the remaining deficit that is given, in the worst dimension, capped at 1."""
    top, bottom = 1, 1
    for j in range(width):
        if left[j] > 0 and give[j] < left[j]:
            if compare_fractions(give[j], left[j], top, bottom) < 0:
                top, bottom = give[j], left[j]
    return top, bottom


@inner
def compare_cost(cost_a: int, give_a: I64, cost_b: int, give_b: I64, left: I64, width: int) -> int:
    """Sign of the difference in effective cost per useful unit."""
    top_a, bottom_a = worst_share(give_a, left, width)
    top_b, bottom_b = worst_share(give_b, left, width)
    return compare_products(cost_a, bottom_a, top_b, cost_b, bottom_b, top_a)


@inner
def rough_cost(cost: int, give: I64, left: I64, width: int) -> float:
    """Effective cost per useful unit, rounded: only good for what is far apart."""
    worst = 1.0
    for j in range(width):
        if left[j] > give[j]:
            need = float(left[j]) / float(give[j])
            if need > worst:
                worst = need
    return float(cost) * worst
