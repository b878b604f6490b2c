"""Supply: which free machines a row may take, and what limits allow."""

from __future__ import annotations

from bigfleet.decision.kernels.amounts import covered, domain_of, fits, look_at
from bigfleet.decision.kernels.classify import owner_of
from bigfleet.decision.kernels.layout import (
    COVERS_UNIT,
    IDLE,
    OFFERS_ALL,
    SPECULATIVE,
    ClassArrays,
    Facts,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.spread import count_claim
from bigfleet.jit.decorators import inner


@inner
def satisfied(ro: Rows, wo: Work, r: int) -> bool:
    """Nothing is missing, members of a folded row that are served as gangs counted."""
    if covered(wo.left[r], ro.width[r]):
        return True
    return bool(wo.served[r] > 0 and wo.left[r, 0] <= wo.served[r])


@inner
def reserved_for(ids: Identities, ro: Rows, r: int, stamp: int) -> bool:
    """An Idle machine with this stamp was made or freed for the row."""
    owner = owner_of(ids, stamp)
    if owner < 0:
        return False
    if owner == r:
        return True
    return bool(owner == ro.parent[r] and ids.key[stamp] == ids.key[ro.member[ro.members[r]]])


@inner
def _reserved_against(
    ma: MachineArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, r: int, m: int
) -> bool:
    """Kept for a live, unmet row that had its turn before this one, or that waits for a gang's."""
    owner = owner_of(ids, ma.stamp[m])
    if owner < 0 or owner == r or owner == ro.parent[r] or satisfied(ro, wo, owner):
        return False
    return bool(ro.position[owner] < ro.position[r]) or _completes(ma, ro, fa, wo, r, owner, m)


@inner
def _completes(
    ma: MachineArrays, ro: Rows, fa: Facts, wo: Work, r: int, owner: int, m: int
) -> bool:
    """A gang of the same priority can be complete where it has this machine."""
    key = ro.domain_key[owner]
    if key < 0 or ro.priority[owner] < ro.priority[r] or not wo.satisfiable[owner]:
        return False
    return bool(wo.domain[owner] >= 0 and domain_of(ma, fa, key, m) == wo.domain[owner])


@inner
def available(
    ma: MachineArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work, r: int, m: int, planned: bool
) -> bool:
    """A free machine of a class that suits the row is not spoken for."""
    if wo.taken[m] >= 0 or (planned and wo.aside[m]):
        return False
    if ro.masks[r] < ro.masks[r + 1] and not fits(ma, ro, fa, r, m):
        return False
    if ma.state[m] != IDLE or ma.stamp[m] < 0:
        return True
    return not _reserved_against(ma, ids, ro, fa, wo, r, m)


@inner
def suits(cl: ClassArrays, ro: Rows, fa: Facts, sc: Scratch, r: int, c: int) -> bool:
    """Machines of the class may be newly placed for the row."""
    if not fa.matches[ro.match[r], c] or cl.loss[c, ro.interruption[r]] < 0:
        return False
    return look_at(cl, ro, fa, sc, r, c) == COVERS_UNIT | OFFERS_ALL


@inner
def may_create(cl: ClassArrays, fa: Facts, wo: Work, c: int) -> bool:
    """Stock, quota and spend limit allow one more machine of the class."""
    return not cl.cooling[c] and within_quota(cl, fa, wo, c) and within_spend(cl, fa, wo, c)


@inner
def within_quota(cl: ClassArrays, fa: Facts, wo: Work, c: int) -> bool:
    quota = fa.quota[cl.pool[c]]
    return bool(quota < 0 or wo.used[cl.pool[c]] < quota)


@inner
def within_spend(cl: ClassArrays, fa: Facts, wo: Work, c: int) -> bool:
    limit = fa.limits[0]
    if limit < 0 or not cl.elastic[c] or cl.price[c] == 0:
        return True
    return bool(cl.price[c] <= limit - wo.spend[0])


@inner
def use_machine(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, wo: Work, r: int, m: int, sign: int
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
