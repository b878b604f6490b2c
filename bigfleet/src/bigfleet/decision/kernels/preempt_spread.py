"""How many more machines each domain may have, for a preemptor with spread constraints.

A victim in a domain that is full already would be drained, and then not taken: the next cycle would
look for another one, and so on through the fleet.
"""

from __future__ import annotations

from bigfleet.decision.kernels.amounts import domain_of, fits
from bigfleet.decision.kernels.layout import (
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
from bigfleet.decision.kernels.spread import count_claim, has_labels, leave_room
from bigfleet.decision.kernels.supply import suits
from bigfleet.jit.decorators import inner


@inner
def make_room(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, vi: Victims, r: int,
) -> None:  # fmt: skip
    """Turn a row's counts into how many more each domain may have, what is on its way counted."""
    for i in range(ro.members[r], ro.members[r + 1]):
        key = ids.key[ro.member[i]]
        for j in range(ho.coming_at[key], ho.coming_at[key + 1]):
            if wo.expected[ho.coming[j]] == r:
                count_claim(ma, ro, fa, wo, r, ho.coming[j], 1)
    for i in range(ro.spread[r], ro.spread[r + 1]):
        leave_room(ro, fa, wo, r, i, _reaches_empty(ma, cl, ro, fa, wo, sc, vi, r, i))


@inner
def _reaches_empty(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, vi: Victims,
    r: int, i: int,
) -> bool:  # fmt: skip
    """Some machine it could pick is in a domain where it has none."""
    for k in range(fa.match_start[ro.match[r]], fa.match_start[ro.match[r] + 1]):
        c = fa.match_class[k]
        if not suits(cl, ro, fa, sc, r, c):
            continue
        for e in range(vi.excess_at[c], vi.excess_at[c + 1]):
            m = vi.excess[e]
            if ma.cluster[m] != ro.cluster[r] and _is_first(ma, ro, fa, wo, r, i, m):
                return True
        for j in range(vi.bucket_at[c], vi.bucket_at[c + 1]):
            b = vi.bucket[j]
            if vi.priority[b - c * len(vi.priority)] >= ro.priority[r]:
                continue
            for v in range(vi.victim_at[b], vi.victim_at[b + 1]):
                m = vi.victim[v]
                if not wo.moved[m] and _is_first(ma, ro, fa, wo, r, i, m):
                    return True
    return False


@inner
def _is_first(ma: MachineArrays, ro: Rows, fa: Facts, wo: Work, r: int, i: int, m: int) -> bool:
    if wo.preempt[m] >= 0 or not has_labels(ma, ro, fa, r, m) or not fits(ma, ro, fa, r, m):
        return False
    return bool(wo.spread[ro.spread_count[i] + domain_of(ma, fa, ro.spread_key[i], m)] == 0)
