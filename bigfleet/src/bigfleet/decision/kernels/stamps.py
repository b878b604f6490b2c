"""Stamps: which identity a claimed or taken machine carries from now on."""

from __future__ import annotations

from bigfleet.decision.kernels.layout import Identities, MachineArrays, Rows, Work
from bigfleet.jit.decorators import inner

STAMPS_GIVEN = 4
"""The place in ``Work.counters``."""
KEEPS_NUMBER = -1
"""In ``Work.turn``: the stamp keeps the sequence number it has."""


@inner
def name_claim(wo: Work, identity: int) -> None:
    """A claimed machine carries this identity: its member of a folded row is named."""
    wo.named[identity] += 1


@inner
def next_member(ro: Rows, wo: Work, r: int) -> int:
    """The identity a new stamp gets: the first member that none names yet, or the first."""
    end = ro.members[r + 1]
    while wo.next_member[r] < end and wo.named[ro.member[wo.next_member[r]]] > 0:
        wo.next_member[r] += 1
    if wo.next_member[r] < end:
        return ro.member[wo.next_member[r]]
    return ro.member[ro.members[r]]


@inner
def restamp(ma: MachineArrays, ids: Identities, ro: Rows, wo: Work, r: int, m: int) -> None:
    """A claim re-stamps; where the stamp has the key of a member, it says that member again."""
    stamp = ma.stamp[m]
    if stamp >= 0:
        for i in range(ro.members[r], ro.members[r + 1]):
            if ids.key[ro.member[i]] == ids.key[stamp]:
                give_stamp(wo, m, ro.member[i])
                return
    stamp_new(ro, wo, r, m)


@inner
def stamp_new(ro: Rows, wo: Work, r: int, m: int) -> None:
    """Give a machine a fresh stamp of the row."""
    give_stamp(wo, m, next_member(ro, wo, r))


@inner
def give_stamp(wo: Work, m: int, identity: int) -> None:
    """A stamp with a new sequence number; numbers follow the order in which stamps are given."""
    wo.identity[m] = identity
    wo.turn[m] = next_turn(wo)
    name_claim(wo, identity)


@inner
def next_turn(wo: Work) -> int:
    """The place of the next stamp among those that this cycle gives."""
    wo.counters[STAMPS_GIVEN] += 1
    return wo.counters[STAMPS_GIVEN]


@inner
def unname(ma: MachineArrays, ro: Rows, wo: Work, r: int, m: int) -> None:
    """The row loses the machine: its member may be named by another."""
    carried = wo.identity[m] if wo.identity[m] >= 0 else ma.stamp[m]
    if carried >= 0 and wo.named[carried] > 0:
        wo.named[carried] -= 1
        wo.next_member[r] = ro.members[r]
    wo.identity[m] = -1
