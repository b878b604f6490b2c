"""Round two of credit: what is left in a cluster, by groups of machines that are alike.

After round one the unclaimed machines of a cluster are put into groups: one class, one state, one
reclamation penalty, and stamped for a live row or not. What a group gives to a row is then asked
once, and a row with a deficit looks at the groups of its cluster instead of at every machine. In a
group machines stand in the order of their ids (``loose``), and again in the order in which their
stamps were given (``loose_by_stamp``): which of the two counts depends on when the row last shrank.
A group whose machines are all claimed leaves its cluster's list.
"""

from __future__ import annotations

import numpy as np

from bigfleet.decision.kernels.amounts import (
    covered,
    fits,
    holds_masks,
    in_domain,
    look_at,
    reduces,
)
from bigfleet.decision.kernels.classify import owner_of, penalty_rank
from bigfleet.decision.kernels.credit import claim, claim_from
from bigfleet.decision.kernels.index_sort import sift, sort_index
from bigfleet.decision.kernels.layout import (
    CONFIGURED,
    CONFIGURING,
    COVERS_UNIT,
    GROUP_BY_ID,
    GROUP_BY_STAMP,
    GROUP_CLASS,
    GROUP_END,
    GROUP_OWNED,
    GROUP_PENALTY,
    GROUP_STATE,
    GROUP_VARIED,
    I32,
    PINNED,
    ClassArrays,
    Facts,
    Holdings,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.leftovers_by_domain import left_in_domain, make_places
from bigfleet.jit.decorators import inner

_PENALTIES = 32
_KINDS = 2 * 3 * _PENALTIES
"""Groups that one class can have in a cluster."""


@inner
def state_rank(ma: MachineArrays, m: int) -> int:
    """Configured before Configuring before Creating."""
    return 0 if ma.state[m] == CONFIGURED else (1 if ma.state[m] == CONFIGURING else 2)


@inner
def sequence_of(ma: MachineArrays, m: int) -> int:
    """The place of a machine's stamp in the order stamps were given; 0 without one."""
    return int(ma.sequence[m]) if ma.stamp[m] >= 0 else 0


@inner
def group_loose(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ho: Holdings, sc: Scratch
) -> None:
    """Put the loose machines of every cluster into groups."""
    number = np.full(len(cl.price) * _KINDS, -1, np.int32)
    size = 0
    for cluster in range(len(ho.loose_at) - 1):
        ho.group_at[cluster] = size
        lo, hi = ho.loose_at[cluster], ho.loose_at[cluster + 1]
        first = size
        for i in range(lo, hi):
            m = ho.loose[i]
            sc.takes[i] = m
            kind = _kind(ma, ids, m)
            g = number[kind]
            if g < 0:
                g = size
                size += 1
                number[kind] = g
                _open_group(ma, ids, ho.group, g, m)
            sc.head[i] = g
            ho.group[g, GROUP_END] += 1
        at = lo
        for g in range(first, size):
            number[_kind(ma, ids, ho.group[g, GROUP_BY_ID])] = -1
            ho.group[g, GROUP_BY_ID] = at
            ho.group[g, GROUP_BY_STAMP] = at
            at += ho.group[g, GROUP_END]
            ho.group[g, GROUP_END] = ho.group[g, GROUP_BY_ID]
        for i in range(lo, hi):
            g, m = sc.head[i], sc.takes[i]
            place = ho.group[g, GROUP_END]
            ho.loose[place] = m
            ho.loose_by_stamp[place] = m
            before = ho.loose[ho.group[g, GROUP_BY_ID]]
            if sequence_of(ma, m) != sequence_of(ma, before):
                ho.group[g, GROUP_VARIED] = 1
            ho.group[g, GROUP_END] = place + 1
        for g in range(first, size):
            ho.group_list[g] = g
            if ho.group[g, GROUP_VARIED]:
                _order_by_stamp(ma, ho, sc, g)
        ho.group_end[cluster] = size
    ho.group_at[len(ho.loose_at) - 1] = size


@inner
def _kind(ma: MachineArrays, ids: Identities, m: int) -> int:
    """The number of a machine's kind: machines of one kind are one group."""
    owned = 1 if owner_of(ids, ma.stamp[m]) >= 0 else 0
    return int(
        ((ma.cls[m] * 2 + owned) * 3 + state_rank(ma, m)) * _PENALTIES + penalty_rank(ma, ids, m)
    )


@inner
def _open_group(ma: MachineArrays, ids: Identities, group: I32, g: int, m: int) -> None:
    """A group without machines, for machines like this one."""
    group[g, GROUP_CLASS] = ma.cls[m]
    group[g, GROUP_OWNED] = owner_of(ids, ma.stamp[m]) >= 0
    group[g, GROUP_STATE] = state_rank(ma, m)
    group[g, GROUP_PENALTY] = penalty_rank(ma, ids, m)
    group[g, GROUP_BY_ID] = m
    group[g, GROUP_END] = 0
    group[g, GROUP_VARIED] = 0


@inner
def _order_by_stamp(ma: MachineArrays, ho: Holdings, sc: Scratch, g: int) -> None:
    lo, hi = ho.group[g, GROUP_BY_ID], ho.group[g, GROUP_END]
    for i in range(hi - lo):
        m = ho.loose[lo + i]
        sc.k1[i] = sequence_of(ma, m)
        sc.k2[i] = ma.rank[m]
        sc.k3[i] = 0
    sort_index(sc.k1, sc.k2, sc.k3, sc.sorted, sc.spare, hi - lo)
    for i in range(hi - lo):
        ho.loose_by_stamp[lo + i] = ho.loose[lo + sc.sorted[i]]


@inner
def claim_loose(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int,
) -> None:  # fmt: skip
    """Round two: the cluster's other machines, those stamped for no live row first.

    What is stamped for this row itself and still loose does not make its deficit smaller: round
    one would have claimed it.
    """
    key = ro.domain_key[r]
    if covered(wo.left[r], ro.width[r]) or (key >= 0 and wo.domain[r] < 0):
        return
    if key >= 0 and fa.domain_column[key] >= 0:
        make_places(ma, ids, ro, fa, ho, wo, sc, key)
        left = left_in_domain(ho, wo, sc, key, ro.cluster[r], wo.domain[r])
        _claim_in_domain(ma, cl, ids, ro, fa, wo, sc, r, left)
        return
    found = _groups_for(ma, cl, ro, fa, ho, wo, sc, r)
    for wants_unit in range(1, -1, -1):
        for owned in range(2):
            heads = 0
            for i in range(found):
                g = sc.cand[i]
                flags = sc.give_flags[ho.group[g, GROUP_CLASS]]
                if ho.group[g, GROUP_OWNED] == owned and bool(flags & COVERS_UNIT) == bool(
                    wants_unit
                ):
                    heads = _add_heads(ma, cl, ro, fa, ho, wo, sc, r, g, heads)
            if heads > 0:
                _claim_best(ma, cl, ids, ro, fa, ho, wo, sc, r, heads)
            if covered(wo.left[r], ro.width[r]):
                return


@inner
def _claim_in_domain(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work,
    sc: Scratch, r: int, left: int,
) -> None:  # fmt: skip
    """A gang's claims among the machines of its domain, which are in ``sc.chain``."""
    for wants_unit in range(1, -1, -1):
        for owned in range(2):
            size = 0
            for i in range(left):
                m = sc.chain[i]
                c = ma.cls[m]
                if not fits(ma, ro, fa, r, m) or (ro.interruption[r] == PINNED and cl.risky[c]):
                    continue
                flags = look_at(cl, ro, fa, sc, r, c)
                if (owner_of(ids, ma.stamp[m]) >= 0) == bool(owned):
                    if bool(flags & COVERS_UNIT) == bool(wants_unit):
                        sc.takes[size] = m
                        size += 1
            if size > 0:
                claim_from(ma, cl, ids, ro, fa, wo, sc, r, sc.takes, 0, size)


@inner
def _groups_for(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, ho: Holdings, wo: Work, sc: Scratch,
    r: int
) -> int:  # fmt: skip
    """Groups of the row's cluster that may lower its deficit, in ``sc.cand``; how many."""
    cluster, key, width = ro.cluster[r], ro.domain_key[r], ro.width[r]
    pinned = ro.interruption[r] == PINNED
    found = 0
    i = ho.group_at[cluster]
    while i < ho.group_end[cluster]:
        g = ho.group_list[i]
        at, end = ho.group[g, GROUP_BY_ID], ho.group[g, GROUP_END]
        while at < end and wo.claim[ho.loose[at]] >= 0:
            at += 1
        ho.group[g, GROUP_BY_ID] = at
        if at == end:
            ho.group_end[cluster] -= 1
            ho.group_list[i] = ho.group_list[ho.group_end[cluster]]
            continue
        i += 1
        c = ho.group[g, GROUP_CLASS]
        if not fa.matches[ro.own_match[r], c] or (pinned and cl.risky[c]):
            continue
        if key >= 0 and fa.domain_column[key] < 0 and fa.domain_of_class[key, c] != wo.domain[r]:
            continue
        look_at(cl, ro, fa, sc, r, c)
        if reduces(sc, c, wo.left[r], width):
            sc.cand[found] = g
            found += 1
    return found


@inner
def _add_heads(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, ho: Holdings, wo: Work, sc: Scratch,
    r: int, g: int, heads: int,
) -> int:  # fmt: skip
    """The group's next machines: of those stamped before the row shrank, and of the later ones."""
    lo, end = ho.group[g, GROUP_BY_ID], ho.group[g, GROUP_END]
    if not ho.group[g, GROUP_VARIED]:
        later = sequence_of(ma, ho.loose[lo]) >= ro.shrunk_at[r]
        return _add_head(ma, cl, ro, fa, ho, wo, sc, r, g, heads, lo, end, later)
    heads = _add_head(ma, cl, ro, fa, ho, wo, sc, r, g, heads, lo, end, False)
    at = ho.group[g, GROUP_BY_STAMP]
    while at < end and wo.claim[ho.loose_by_stamp[at]] >= 0:
        at += 1
    ho.group[g, GROUP_BY_STAMP] = at
    # The first one stamped after the row shrank, by halves.
    hi = end
    while at < hi:
        middle = (at + hi) // 2
        if sequence_of(ma, ho.loose_by_stamp[middle]) < ro.shrunk_at[r]:
            at = middle + 1
        else:
            hi = middle
    return _add_head(ma, cl, ro, fa, ho, wo, sc, r, g, heads, at, end, True)


@inner
def _add_head(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, ho: Holdings, wo: Work, sc: Scratch,
    r: int, g: int, heads: int, at: int, end: int, later: bool,
) -> int:  # fmt: skip
    sc.head[heads] = g
    sc.head_idle[heads] = later
    sc.head_at[heads] = at
    sc.head_end[heads] = end
    sc.k1[heads] = 2 * ho.group[g, GROUP_STATE] + later
    sc.head_cls[heads] = ho.group[g, GROUP_CLASS]
    return heads + 1 if _set_head(ma, cl, ro, fa, ho, wo, sc, r, heads) else heads


@inner
def _set_head(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, ho: Holdings, wo: Work, sc: Scratch,
    r: int, h: int,
) -> bool:  # fmt: skip
    """Let a head stand at the next machine the row can claim; False where there is none left."""
    later = sc.head_idle[h] == 1
    varied = ho.group[sc.head[h], GROUP_VARIED]
    machines = ho.loose_by_stamp if later else ho.loose
    plain = ro.domain_key[r] < 0 and ro.masks[r] == ro.masks[r + 1]
    at = sc.head_at[h]
    while at < sc.head_end[h]:
        m = machines[at]
        if wo.claim[m] < 0 and (
            plain or (holds_masks(ma, ro, r, m) and in_domain(ma, ro, fa, wo, r, m))
        ):
            if later or not varied or sequence_of(ma, m) < ro.shrunk_at[r]:
                break
        at += 1
    sc.head_at[h] = at
    if at == sc.head_end[h]:
        return False
    m = machines[at]
    if later:
        sc.k2[h] = sequence_of(ma, m)
        sc.k3[h] = ma.rank[m]
    else:
        sc.k2[h] = cl.price[ma.cls[m]]
        penalty = ho.group[sc.head[h], GROUP_PENALTY]
        sc.k3[h] = (np.int64(63 - penalty) << 32) | np.int64(ma.rank[m])
    return True


@inner
def _claim_best(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, heads: int,
) -> None:  # fmt: skip
    """Claim from the heads, the best next, while the deficit gets smaller."""
    for h in range(heads):
        sc.sorted[h] = h
    for i in range(heads // 2 - 1, -1, -1):
        sift(sc.k1, sc.k2, sc.k3, sc.sorted, i, heads)
    while heads > 0 and not covered(wo.left[r], ro.width[r]):
        h = sc.sorted[0]
        # A class that gives nothing now never will: what is missing only gets less.
        more = reduces(sc, sc.head_cls[h], wo.left[r], ro.width[r])
        if more:
            machines = ho.loose_by_stamp if sc.head_idle[h] else ho.loose
            claim(ma, ids, ro, fa, wo, sc, r, machines[sc.head_at[h]])
            sc.head_at[h] += 1
            more = _set_head(ma, cl, ro, fa, ho, wo, sc, r, h)
        if not more:
            heads -= 1
            sc.sorted[0] = sc.sorted[heads]
        sift(sc.k1, sc.k2, sc.k3, sc.sorted, 0, heads)
