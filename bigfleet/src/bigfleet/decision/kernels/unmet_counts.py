"""Counting what could have served a row, and what limits held back."""

from __future__ import annotations

import numpy as np

from bigfleet.decision.kernels.amounts import fits, holds_masks, look_at, subtract
from bigfleet.decision.kernels.layout import (
    COVERS_UNIT,
    FAILED,
    I64,
    OFFERS_ALL,
    U8,
    ClassArrays,
    Facts,
    Holdings,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.supply import suits, within_quota, within_spend
from bigfleet.jit.decorators import jit


@jit
def suiting(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, sc: Scratch, rows: I64, kind: I64,
    out: I64,
) -> None:  # fmt: skip
    """Machines by state that hold the requirements, cover the unit and offer every dimension.

    Rows of one kind, which stand together, ask the same of topology columns: machines are counted
    once for all of them.
    """
    counts = np.zeros((len(cl.price), FAILED + 1), np.int64)
    for i in range(len(rows)):
        r = rows[i]
        if i == 0 or kind[i] != kind[i - 1]:
            counts[:] = 0
            for m in ma.order:
                if ma.state[m] > 0 and holds_masks(ma, ro, r, m):
                    counts[ma.cls[m], ma.state[m]] += 1
        for j in range(fa.match_start[ro.match[r]], fa.match_start[ro.match[r] + 1]):
            c = fa.match_class[j]
            if look_at(cl, ro, fa, sc, r, c) == COVERS_UNIT | OFFERS_ALL:
                for state in range(1, FAILED + 1):
                    out[r, state] += counts[c, state]


@jit
def held_back(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, ho: Holdings, wo: Work, sc: Scratch,
    rows: I64, short: I64,
) -> U8:  # fmt: skip
    """Per row, of slots that wait behind a quota, the spend limit and a stock-out: 0 none, 1 some,
    2 enough for what the row is short of. The last column speaks of all of them together.
    """
    out = np.zeros((len(rows), 4), np.uint8)
    give = np.zeros((4, short.shape[1]), np.int64)
    for i in range(len(rows)):
        r = rows[i]
        give[:] = 0
        for k in range(fa.match_start[ro.match[r]], fa.match_start[ro.match[r] + 1]):
            c = fa.match_class[k]
            quota, spend = within_quota(cl, fa, wo, c), within_spend(cl, fa, wo, c)
            if (quota and spend and not cl.cooling[c]) or not suits(cl, ro, fa, sc, r, c):
                continue
            behind = 2 if cl.cooling[c] else 0 if not quota else 1
            for at in range(ho.bucket_at[2 * c + 1], ho.bucket_at[2 * c + 2]):
                if out[i, behind] == 2:
                    break
                if wo.taken[ho.bucket[at]] >= 0 or not fits(ma, ro, fa, r, ho.bucket[at]):
                    continue
                for of in (behind, 3):
                    enough = True
                    for j in range(ro.width[r]):
                        give[of, j] += sc.give[c, j]
                        enough = enough and give[of, j] >= short[r, j]
                    out[i, of] = 2 if enough else 1
    return out


@jit
def subtract_coming(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, machines: I64,
    short: I64,
) -> None:  # fmt: skip
    """From what rows lack, take what is on its way to them and what they preempt."""
    for m in machines:
        r = wo.preempt[m] if wo.preempt[m] >= 0 else wo.expected[m]
        look_at(cl, ro, fa, sc, r, ma.cls[m])
        subtract(sc, ma.cls[m], short[r], ro.width[r], 1)
