"""What is left in a cluster, by domain: for gangs, which look at all domains at once.

Unclaimed machines of a cluster that are alike to every gang under one domain key (one domain, one
class, one priority above which they yield, and creditable or not) form a *place*. A gang that
chooses its domain adds up places; one that credits what is left there looks at its machines.
Places are made when the first gang under a key asks, and once more after round two of credit;
from then on no phase claims what is left.
"""

from __future__ import annotations

from bigfleet.decision.kernels.amounts import domain_of
from bigfleet.decision.kernels.classify import owner_of
from bigfleet.decision.kernels.layout import (
    PLACE_CLASS,
    PLACE_COUNT,
    PLACE_CREDITABLE,
    PLACE_DOMAIN,
    PLACE_HELD_AT,
    PLACE_NEXT,
    PLACE_START,
    Facts,
    Holdings,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.preemptible_sums import held_at
from bigfleet.jit.decorators import inner


@inner
def renew_places(ho: Holdings) -> None:
    """What was claimed meanwhile is left no more: places are made again when a gang asks."""
    for key in range(len(ho.place_known)):
        ho.place_known[key] = 0


@inner
def make_places(
    ma: MachineArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, wo: Work, sc: Scratch,
    key: int,
) -> None:  # fmt: skip
    """Make the places under a domain key, unless they are there."""
    if ho.place_known[key]:
        return
    ho.place_known[key] = 1
    for d in range(len(sc.group_head)):
        sc.group_head[d] = -1
    # A key's places and machines stand in a stretch of their own.
    size = filled = key * len(ho.loose)
    for cluster in range(len(ho.loose_at) - 1):
        first = size
        ho.place_at[key, cluster] = first
        for i in range(ho.loose_at[cluster], ho.loose_at[cluster + 1]):
            m = ho.loose[i]
            domain = domain_of(ma, fa, key, m)
            sc.head[i] = -1
            if domain < 0 or wo.claim[m] >= 0:
                continue
            p = _place_of(ma, ids, ro, fa, ho, sc, domain, m, size)
            size += p == size
            sc.head[i] = p
            ho.place[p, PLACE_COUNT] += 1
        for p in range(first, size):
            sc.group_head[ho.place[p, PLACE_DOMAIN]] = -1
            ho.place[p, PLACE_START] = filled
            filled += ho.place[p, PLACE_COUNT]
            ho.place[p, PLACE_COUNT] = 0
        for i in range(ho.loose_at[cluster], ho.loose_at[cluster + 1]):
            p = sc.head[i]
            if p >= 0:
                ho.place_machine[ho.place[p, PLACE_START] + ho.place[p, PLACE_COUNT]] = ho.loose[i]
                ho.place[p, PLACE_COUNT] += 1
    ho.place_at[key, len(ho.loose_at) - 1] = size


@inner
def _place_of(
    ma: MachineArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings, sc: Scratch, domain: int,
    m: int, size: int,
) -> int:  # fmt: skip
    """The machine's place; ``size`` is the next one, where it has none yet."""
    owner = owner_of(ids, ma.stamp[m])
    creditable = owner < 0 or ro.domain_key[owner] < 0
    above = held_at(ma, ids, ro, fa, m)
    p = sc.group_head[domain]
    while p >= 0:
        if (
            ho.place[p, PLACE_CLASS] == ma.cls[m]
            and ho.place[p, PLACE_HELD_AT] == above
            and ho.place[p, PLACE_CREDITABLE] == creditable
        ):
            return p
        p = ho.place[p, PLACE_NEXT]
    ho.place[size, PLACE_DOMAIN] = domain
    ho.place[size, PLACE_CLASS] = ma.cls[m]
    ho.place[size, PLACE_HELD_AT] = above
    ho.place[size, PLACE_CREDITABLE] = creditable
    ho.place[size, PLACE_COUNT] = 0
    # Machines come by class: the place that was met last is looked at first.
    ho.place[size, PLACE_NEXT] = sc.group_head[domain]
    sc.group_head[domain] = size
    return size


@inner
def left_in_domain(ho: Holdings, wo: Work, sc: Scratch, key: int, cluster: int, domain: int) -> int:
    """Unclaimed machines of a cluster in one domain, in ``sc.chain``; how many."""
    size = 0
    for p in range(ho.place_at[key, cluster], ho.place_at[key, cluster + 1]):
        if ho.place[p, PLACE_DOMAIN] == domain:
            start = ho.place[p, PLACE_START]
            for i in range(start, start + ho.place[p, PLACE_COUNT]):
                if wo.claim[ho.place_machine[i]] < 0:
                    sc.chain[size] = ho.place_machine[i]
                    size += 1
    return size
