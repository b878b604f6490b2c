"""Spread: how many machines of a row are in each domain, and where one more may go."""

from __future__ import annotations

from bigfleet.decision.kernels.amounts import domain_of
from bigfleet.decision.kernels.layout import I32, Facts, MachineArrays, Rows, Scratch, Work
from bigfleet.jit.decorators import inner


@inner
def count_claim(
    ma: MachineArrays, ro: Rows, fa: Facts, wo: Work, r: int, m: int, change: int
) -> None:
    """Keep the counts per domain of a row with spread constraints."""
    for i in range(ro.spread[r], ro.spread[r + 1]):
        domain = domain_of(ma, fa, ro.spread_key[i], m)
        if domain >= 0:
            wo.spread[ro.spread_count[i] + domain] += change


@inner
def count_claims(
    ma: MachineArrays, ro: Rows, fa: Facts, wo: Work, r: int, machines: I32, lo: int, hi: int
) -> None:
    """Count many claims at once; machines of one class follow each other."""
    for k in range(ro.spread[r], ro.spread[r + 1]):
        key, base = ro.spread_key[k], ro.spread_count[k]
        column = fa.domain_column[key]
        last, domain = -1, -1
        same = 0
        for i in range(lo, hi):
            m = machines[i]
            now = ma.columns[column, m] if column >= 0 else ma.cls[m]
            if now != last:
                if domain >= 0:
                    wo.spread[base + domain] += same
                last, same = now, 0
                domain = now if column >= 0 else fa.domain_of_class[key, now]
            same += 1
        if domain >= 0:
            wo.spread[base + domain] += same


@inner
def has_labels(ma: MachineArrays, ro: Rows, fa: Facts, r: int, m: int) -> bool:
    for i in range(ro.spread[r], ro.spread[r + 1]):
        if domain_of(ma, fa, ro.spread_key[i], m) < 0:
            return False
    return True


@inner
def drop_skewed(
    ma: MachineArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, r: int, heads: int
) -> None:
    """Take heads out of this step (tier -1) whose domain would exceed the smallest by too much.

    The domains of a constraint are the values among machines the row has or could take now; all
    heads that carry every label could be taken before any constraint was looked at.
    """
    for i in range(ro.spread[r], ro.spread[r + 1]):
        key = ro.spread_key[i]
        base = ro.spread_count[i]
        floor = -1
        for d in range(fa.domain_count[key]):
            count = wo.spread[base + d]
            if count > 0 and (floor < 0 or count < floor):
                floor = count
        for h in range(heads):
            if sc.head_tier[h] != -2 and wo.spread[base + domain_of(ma, fa, key, sc.head[h])] == 0:
                floor = 0
        if floor < 0:
            floor = 0
        for h in range(heads):
            if sc.head_tier[h] >= 0:
                count = wo.spread[base + domain_of(ma, fa, key, sc.head[h])]
                if count + 1 - floor > ro.spread_skew[i]:
                    sc.head_tier[h] = -1


@inner
def leave_room(ro: Rows, fa: Facts, wo: Work, r: int, i: int, empty: bool) -> None:
    """Turn a constraint's counts into how many more each domain may have; ``empty``: some reachable
    domain has none. What is picked does not lift the smallest: it comes later, if at all.
    """
    base, floor = ro.spread_count[i], -1
    for d in range(fa.domain_count[ro.spread_key[i]]):
        count = wo.spread[base + d]
        if count > 0 and (floor < 0 or count < floor):
            floor = count
    if empty or floor < 0:
        floor = 0
    for d in range(fa.domain_count[ro.spread_key[i]]):
        wo.spread[base + d] = floor + ro.spread_skew[i] - wo.spread[base + d]


@inner
def has_room(ma: MachineArrays, ro: Rows, fa: Facts, wo: Work, r: int, m: int) -> bool:
    """One more may come to the machine's domains; to be asked after ``leave_room``."""
    for i in range(ro.spread[r], ro.spread[r + 1]):
        domain = domain_of(ma, fa, ro.spread_key[i], m)
        if domain < 0 or wo.spread[ro.spread_count[i] + domain] <= 0:
            return False
    return True
