"""Acquire: free machines for what credit left missing, always the best head next."""

from __future__ import annotations

from bigfleet.decision.kernels.amounts import covered, subtract
from bigfleet.decision.kernels.grouped_takes import take_grouped
from bigfleet.decision.kernels.heads import (
    advance,
    best_head,
    fill_heads,
    rate_heads,
    spread_columns,
)
from bigfleet.decision.kernels.index_sort import sort_index
from bigfleet.decision.kernels.layout import (
    SPECULATIVE,
    ClassArrays,
    Facts,
    Holdings,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.stamps import stamp_new
from bigfleet.decision.kernels.supply import use_machine
from bigfleet.jit.decorators import inner


@inner
def acquire(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, planned: bool,
) -> int:  # fmt: skip
    """Take machines until ``sc.left`` is covered or none is left; how many (``sc.takes``)."""
    width = ro.width[r]
    if covered(sc.left, width):
        return 0
    heads = fill_heads(ma, cl, ids, ro, fa, ho, wo, sc, r, planned)
    columns, over = spread_columns(ro, fa, r) if ro.domain_key[r] < 0 else (0, -1)
    if columns < 2 and (columns == 0 or not (fa.limits[0] >= 0 or fa.limits[2])):
        return take_grouped(ma, cl, ids, ro, fa, ho, wo, sc, r, over, heads, planned)
    takes = 0
    while not covered(sc.left, width):
        rate_heads(ma, cl, ro, fa, wo, sc, r, heads)
        h = best_head(ro, sc, r, heads)
        if h < 0:
            break
        m = sc.head[h]
        use_machine(ma, cl, ro, fa, wo, r, m, 1)
        sc.takes[takes] = m
        subtract(sc, ma.cls[m], sc.left, width, 1)
        advance(ma, ids, ro, fa, ho, wo, sc, r, h, planned)
        takes += 1
    return takes


@inner
def give_back(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, r: int,
    takes: int,
) -> int:  # fmt: skip
    """Drop takes that turned out redundant, most expensive first, later takes first on ties.

    Also where the skew would keep one: credit ignores skew, so the next cycle would give it up.
    """
    width = ro.width[r]
    if takes < 2 or not covered(sc.left, width):
        return takes
    possible = False
    for t in range(takes):
        if _redundant(ma, sc, width, sc.takes[t]):
            possible = True
    if not possible:
        return takes
    most_expensive_first(ma, cl, ro, sc, r, 0, takes)
    for i in range(takes):
        t = sc.sorted[i]
        m = sc.takes[t]
        if not _redundant(ma, sc, width, m):
            continue
        use_machine(ma, cl, ro, fa, wo, r, m, -1)
        subtract(sc, ma.cls[m], sc.left, width, -1)
        sc.takes[t] = -1
    kept = 0
    for t in range(takes):
        if sc.takes[t] >= 0:
            sc.takes[kept] = sc.takes[t]
            kept += 1
    return kept


@inner
def most_expensive_first(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, sc: Scratch, r: int, lo: int, hi: int
) -> None:
    """Order ``sc.takes[lo:hi]`` by cost: offsets from ``lo`` in ``sc.sorted``; ties last first."""
    for i in range(hi - lo):
        c = ma.cls[sc.takes[lo + i]]
        sc.k1[i] = -(cl.price[c] + cl.loss[c, ro.interruption[r]])
        sc.k2[i] = -i
        sc.k3[i] = 0
    sort_index(sc.k1, sc.k2, sc.k3, sc.sorted, sc.spare, hi - lo)


@inner
def _redundant(ma: MachineArrays, sc: Scratch, width: int, m: int) -> bool:
    """The rest covers without it."""
    c = ma.cls[m]
    for j in range(width):
        if sc.left[j] + sc.give[c, j] > 0:
            return False
    return True


@inner
def commit(ma: MachineArrays, ro: Rows, wo: Work, sc: Scratch, r: int, takes: int) -> None:
    """What was taken becomes the row's."""
    for t in range(takes):
        m = sc.takes[t]
        stamp_new(ro, wo, r, m)
        subtract(sc, ma.cls[m], wo.left[r], ro.width[r], 1)
        count_commit(ma, wo, r, m)


@inner
def count_commit(ma: MachineArrays, wo: Work, r: int, m: int) -> None:
    """A free machine is the row's: what was known of its bucket no longer holds."""
    wo.claim[m] = r
    c = ma.cls[m]
    wo.changes[c] += 1
    wo.stale[2 * c] = 1
    wo.stale[2 * c + 1] = 1
    if ma.state[m] == SPECULATIVE:
        wo.counters[0] += 1
    note(wo, m)


@inner
def note(wo: Work, entry: int) -> None:
    """Remember that a free machine was taken (or, as ``-2 - m``, became free again)."""
    wo.log[wo.log_size[0]] = entry
    wo.log_size[0] += 1
