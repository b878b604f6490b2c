"""Optimistic concurrency inside phase 1: proposals ahead of a row's turn, commits in order.

A worker serves rows on a private view of what is free and notes what it would take. Everything a
plain row reads are the buckets of its matching classes, so a proposal holds as long as none of
them changed; ``changes`` is their sequence number. What would read more (gangs, folded rows,
machines reserved for others, drains to call off) is not proposed but served at its turn.
"""

from __future__ import annotations

from bigfleet.decision.kernels.acquire import commit
from bigfleet.decision.kernels.amounts import covered, look_at
from bigfleet.decision.kernels.assign import expect, serve_plain, serve_row
from bigfleet.decision.kernels.layout import (
    I32,
    I64,
    ClassArrays,
    Facts,
    Holdings,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.supply import use_machine
from bigfleet.jit.decorators import inner

PROPOSALS, CONFLICTS, RECOMPUTED = 1, 2, 3
"""Places in ``Work.counters``."""


@inner
def _reads_buckets_only(
    ids: Identities, ro: Rows, fa: Facts, ho: Holdings, r: int, sub_row: int
) -> bool:
    """The row's turn depends on nothing but the buckets of its matching classes."""
    if ro.domain_key[r] >= 0 or ro.blocked[r] or sub_row >= 0:
        return False
    key = ids.key[ro.member[ro.members[r]]]
    if ho.leaving_at[key] < ho.leaving_at[key + 1] or ho.idle_at[key] < ho.idle_at[key + 1]:
        return False
    for i in range(fa.match_start[ro.match[r]], fa.match_start[ro.match[r] + 1]):
        if ho.owned[fa.match_class[i]]:
            return False
    return True


@inner
def propose(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, first: int, last: int, sub_rows: I64, count: I32, proposed: I32, at: I64,
) -> None:  # fmt: skip
    """Fill what rows first..last-1 would take: ``count`` per row (-1 for no proposal)."""
    size = at[first]
    for r in range(first, last):
        at[r] = size
        count[r] = -1
        if not _reads_buckets_only(ids, ro, fa, ho, r, sub_rows[r]):
            continue
        takes = 0
        if not covered(wo.left[r], ro.width[r]):
            takes = serve_plain(ma, cl, ids, ro, fa, ho, wo, sc, r)
            for t in range(takes):
                use_machine(ma, cl, ro, fa, wo, r, sc.takes[t], -1)
            if size + takes > len(proposed):
                continue
        for t in range(takes):
            proposed[size + t] = sc.takes[t]
        count[r] = takes
        size += takes


@inner
def _holds(ro: Rows, fa: Facts, wo: Work, base: I64, limits: int, r: int) -> bool:
    """No bucket the proposal read has changed, nor a limit it drew on."""
    if (fa.limits[0] >= 0 or fa.limits[2]) and wo.counters[0] != limits:
        return False
    for i in range(fa.match_start[ro.match[r]], fa.match_start[ro.match[r] + 1]):
        if wo.changes[fa.match_class[i]] != base[fa.match_class[i]]:
            return False
    return True


@inner
def broker(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, first: int, last: int, sub_rows: I64, count: I32, proposed: I32, at: I64,
    base: I64, limits: int, sizes: I64,
) -> None:  # fmt: skip
    """Commit rows first..last-1 in order; a proposal that no longer holds is computed again."""
    for r in range(first, last):
        if count[r] >= 0:
            wo.counters[PROPOSALS] += 1
        if count[r] < 0 or not _holds(ro, fa, wo, base, limits, r):
            if count[r] >= 0:
                wo.counters[CONFLICTS] += 1
            wo.counters[RECOMPUTED] += 1
            serve_row(ma, cl, ids, ro, fa, ho, wo, sc, r, sub_rows[r], sizes)
            continue
        for t in range(count[r]):
            m = proposed[at[r] + t]
            look_at(cl, ro, fa, sc, r, ma.cls[m])
            use_machine(ma, cl, ro, fa, wo, r, m, 1)
            sc.takes[t] = m
        commit(ma, ro, wo, sc, r, count[r])
        expect(ma, cl, ids, ro, fa, ho, wo, sc, r)
        wo.done[r] = 1
