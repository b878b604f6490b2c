"""After preemption: rows are charged with losses, and takes that moves made redundant go back.

A machine of a lower need of the own cluster serves at once, while what was taken from the pool in
the same cycle is still on its way. Credit would prefer the one that serves: what is not needed
beside it would be given up half way, or drained as soon as it serves.
"""

from __future__ import annotations

import numpy as np

from bigfleet.decision.kernels.acquire import most_expensive_first, note
from bigfleet.decision.kernels.amounts import look_at, subtract
from bigfleet.decision.kernels.layout import (
    I64,
    ClassArrays,
    Facts,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.stamps import KEEPS_NUMBER, unname
from bigfleet.decision.kernels.supply import use_machine
from bigfleet.jit.decorators import inner


@inner
def charge_losses(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch
) -> None:
    """What a row lost is missing from now on."""
    for m in ma.order:
        r = wo.lost[m]
        if r >= 0:
            look_at(cl, ro, fa, sc, r, ma.cls[m])
            subtract(sc, ma.cls[m], wo.left[r], ro.width[r], -1)


@inner
def give_back_after_moves(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch
) -> None:
    """Drop takes of rows that machines moved to, where the rest covers: most expensive first."""
    at = _takes_of_movers(ma, ro, wo, sc)
    for r in range(len(at) - 1):
        if at[r] == at[r + 1]:
            continue
        most_expensive_first(ma, cl, ro, sc, r, at[r], at[r + 1])
        for i in range(at[r + 1] - at[r]):
            m = sc.takes[at[r] + sc.sorted[i]]
            look_at(cl, ro, fa, sc, r, ma.cls[m])
            if _covers_without(ma, ro, wo, sc, r, m):
                _undo(ma, cl, ro, fa, wo, sc, r, m)


@inner
def _takes_of_movers(ma: MachineArrays, ro: Rows, wo: Work, sc: Scratch) -> I64:
    """Takes of rows with a moved machine in ``sc.takes``, row after row: where each row begins.

    What was made for the row in an earlier cycle stays.
    """
    moving = np.zeros(len(ro.position), np.uint8)
    any_moving = False
    for m in ma.order:
        r = wo.claim[m]
        if wo.moved[m] and r >= 0 and wo.served[r] == 0:
            moving[r] = 1
            any_moving = True
    if not any_moving:
        return np.zeros(1, np.int64)
    at = np.zeros(len(moving) + 1, np.int64)
    for m in ma.order:
        r = wo.taken[m]
        if r >= 0 and moving[r] and wo.turn[m] != KEEPS_NUMBER:
            at[r + 1] += 1
    for r in range(len(moving)):
        at[r + 1] += at[r]
    place = at[:-1].copy()
    for m in ma.order:
        r = wo.taken[m]
        if r >= 0 and moving[r] and wo.turn[m] != KEEPS_NUMBER:
            sc.takes[place[r]] = m
            place[r] += 1
    return at


@inner
def _covers_without(ma: MachineArrays, ro: Rows, wo: Work, sc: Scratch, r: int, m: int) -> bool:
    for j in range(ro.width[r]):
        if wo.left[r, j] + sc.give[ma.cls[m], j] > 0:
            return False
    return True


@inner
def _undo(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, r: int, m: int
) -> None:
    """The machine is free again, as if it had not been taken."""
    use_machine(ma, cl, ro, fa, wo, r, m, -1)
    unname(ma, ro, wo, r, m)
    wo.claim[m] = -1
    subtract(sc, ma.cls[m], wo.left[r], ro.width[r], -1)
    note(wo, -2 - m)
