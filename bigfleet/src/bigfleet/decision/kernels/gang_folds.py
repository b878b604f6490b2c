"""Which gangs already live on several machines."""

from __future__ import annotations

from bigfleet.decision.kernels.layout import (
    CONFIGURED,
    CONFIGURING,
    CREATING,
    DRAINING,
    I64,
    IDLE,
    LEAVING,
    U8,
    MachineArrays,
)
from bigfleet.jit.decorators import jit


@jit
def parts(
    ma: MachineArrays, key_of: I64, own: I64, at: I64, by_key: I64, kind: I64, whole: U8,
    scattered: U8,
) -> None:  # fmt: skip
    """Mark gangs for which a machine is stamped that is too small for the whole gang.

    ``own`` is the gang that a stamp says, -1 where none is alive: gangs of one key may differ in
    size and penalties, and the machines of one tell nothing of the others.
    """
    for m in ma.order:
        state = ma.state[m]
        if ma.flags[m] & LEAVING:
            identity = ma.leaving_for[m]
            coming = state == CONFIGURED or state == DRAINING
        else:
            identity = ma.stamp[m]
            coming = (
                state == CREATING or state == IDLE or state == CONFIGURING or state == CONFIGURED
            )
        if not coming or identity < 0:
            continue
        key = key_of[identity]
        for i in range(at[key], at[key + 1]):
            gang = by_key[i]
            if (own[identity] < 0 or own[identity] == gang) and not whole[kind[gang], ma.cls[m]]:
                scattered[gang] = 1


@jit
def fit_kinds(
    kinds: I64, offers: I64, overhead: I64, alive: U8, alive_of: I64, whole: U8, fits: U8
) -> None:
    """Per kind of gang (cluster, profile, amounts): which classes hold it whole, and whether any
    such machine is there.
    """
    for k in range(len(kinds)):
        cluster = kinds[k, 0]
        for c in range(len(offers)):
            holds = True
            asks = False
            for d in range(offers.shape[1]):
                amount = kinds[k, 2 + d]
                asks = asks or amount > 0
                if max(0, offers[c, d] - overhead[cluster, d]) < amount:
                    holds = False
                    break
            whole[k, c] = holds
            if holds and asks and alive[alive_of[k], c]:
                fits[k] = 1
