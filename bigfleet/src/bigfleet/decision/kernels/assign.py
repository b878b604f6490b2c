"""Phase 1: credit in two rounds over all rows, then every row's turn in the total order."""

from __future__ import annotations

import numpy as np

from bigfleet.decision.kernels.acquire import acquire, commit, give_back, note
from bigfleet.decision.kernels.amounts import covered, fits, in_domain, look_at, reduces, subtract
from bigfleet.decision.kernels.classify import fill_loose, owner_of
from bigfleet.decision.kernels.credit import (
    claim_exact,
    claim_key,
    give_up_ready,
    hold_old_domains,
    keep_from,
)
from bigfleet.decision.kernels.gangs import choose_in_credit, serve_gang
from bigfleet.decision.kernels.layout import (
    CONFIGURED,
    DRAINING,
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
from bigfleet.decision.kernels.leftovers_by_domain import renew_places
from bigfleet.decision.kernels.loose import claim_loose, group_loose
from bigfleet.jit.decorators import inner


@inner
def credit_stamped(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, rows: int,
) -> None:  # fmt: skip
    """Round one for plain rows: the same fingerprint first, then the same key."""
    for r in range(rows):
        if wo.cancel[0] != 0:
            return
        if ro.domain_key[r] < 0:
            claim_exact(ma, cl, ids, ro, fa, ho, wo, sc, r)
    for r in range(rows):
        if wo.cancel[0] != 0:
            return
        if ro.domain_key[r] < 0:
            claim_key(ma, cl, ids, ro, fa, ho, wo, sc, r)


@inner
def list_loose(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, ho: Holdings, wo: Work,
    sc: Scratch, rows: int,
) -> None:  # fmt: skip
    """What round one left, for clusters with a row that is not covered yet."""
    wanted = np.zeros(len(ho.loose_at) - 1, np.int64)
    any_wanted = False
    for r in range(rows):
        if not covered(wo.left[r], ro.width[r]):
            wanted[ro.cluster[r]] = 1
            any_wanted = True
    if any_wanted:
        fill_loose(ma, ids, wo.claim, wanted, ho.loose_at, ho.loose)
        group_loose(ma, cl, ids, ho, sc)
    else:
        for i in range(len(ho.loose_at)):
            ho.loose_at[i] = 0


@inner
def credit_gangs(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, rows: int,
) -> None:  # fmt: skip
    """Round one for gangs, each in the domain it chooses."""
    sizes = np.zeros(4, np.int64)
    for r in range(rows):
        if wo.cancel[0] != 0:
            return
        if ro.domain_key[r] >= 0:
            choose_in_credit(ma, cl, ids, ro, fa, ho, wo, sc, r, sizes)
            claim_exact(ma, cl, ids, ro, fa, ho, wo, sc, r)
            if _shares_stamps(ids, ro, fa, r):
                renew_places(ho)
    for r in range(rows):
        if wo.cancel[0] != 0:
            return
        if ro.domain_key[r] >= 0:
            claim_key(ma, cl, ids, ro, fa, ho, wo, sc, r)
            hold_old_domains(ma, ids, ro, fa, ho, wo, r)
            if _shares_stamps(ids, ro, fa, r):
                renew_places(ho)
    for i in range(wo.log_size[0]):
        note(wo, -2 - wo.log[i])


@inner
def _shares_stamps(ids: Identities, ro: Rows, fa: Facts, r: int) -> bool:
    """A folded row has the gang's key too: what the gang claims may count as left for others."""
    key = ids.key[ro.member[ro.members[r]]]
    for i in range(fa.key_rows[key], fa.key_rows[key + 1]):
        if ro.domain_key[fa.key_row[i]] < 0:
            return True
    return False


@inner
def credit_loose(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, rows: int,
) -> None:  # fmt: skip
    """Round two for all rows."""
    for r in range(rows):
        if wo.cancel[0] != 0:
            return
        claim_loose(ma, cl, ids, ro, fa, ho, wo, sc, r)
    give_up_ready(ma, cl, ids, ro, fa, ho, wo, sc, rows)
    renew_places(ho)


@inner
def keep_leaving(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int,
) -> None:  # fmt: skip
    """The old need of a leaving machine may claim it last of all: the drain is called off."""
    if covered(wo.left[r], ro.width[r]) or len(ho.leaving) == 0:
        return
    size = 0
    for i in range(ro.members[r], ro.members[r + 1]):
        key = ids.key[ro.member[i]]
        for j in range(ho.leaving_at[key], ho.leaving_at[key + 1]):
            m = ho.leaving[j]
            if ma.cluster[m] != ro.cluster[r]:
                continue
            if wo.expected[m] >= 0:
                continue
            sc.takes[size] = m
            size += 1
    if size > 0:
        keep_from(ma, cl, ids, ro, fa, wo, sc, r, size)


@inner
def expect(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int,
) -> None:  # fmt: skip
    """Mark what is on its way to this row and still needed: Draining first, then by id.

    A machine is expected by one row. Rows of one shape share what is on its way, but the row it was
    taken for comes first; the others have what that one no longer needs.
    """
    width = ro.width[r]
    if len(ho.coming) == 0 or covered(wo.left[r], width):
        return
    for j in range(width):
        sc.left[j] = wo.left[r, j]
    for state in (DRAINING, CONFIGURED):
        last = -1
        while not covered(sc.left, width):
            best = -1
            for i in range(ro.members[r], ro.members[r + 1]):
                key = ids.key[ro.member[i]]
                for j in range(ho.coming_at[key], ho.coming_at[key + 1]):
                    m = ho.coming[j]
                    if ma.state[m] != state or wo.kept[m] or ma.rank[m] <= last:
                        continue
                    owner = owner_of(ids, ma.leaving_for[m])
                    if wo.expected[m] >= 0 or (owner != r and not wo.done[owner]):
                        continue
                    if (best < 0 or ma.rank[m] < ma.rank[best]) and fits(ma, ro, fa, r, m):
                        best = m
            if best < 0:
                break
            last = ma.rank[best]
            if not in_domain(ma, ro, fa, wo, r, best):
                continue
            look_at(cl, ro, fa, sc, r, ma.cls[best])
            if reduces(sc, ma.cls[best], sc.left, width):
                wo.expected[best] = r
                subtract(sc, ma.cls[best], sc.left, width, 1)


@inner
def serve_plain(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int,
) -> int:  # fmt: skip
    """A plain row's takes, redundant ones given back; not committed yet."""
    width = ro.width[r]
    for j in range(width):
        sc.left[j] = wo.left[r, j]
    takes = acquire(ma, cl, ids, ro, fa, ho, wo, sc, r, False)
    return give_back(ma, cl, ro, fa, wo, sc, r, takes)


@inner
def _serve_rest_as_gangs(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, sub_row: int, sizes: I64,
) -> None:  # fmt: skip
    """What a folded row could not place on whole machines is tried as gangs, last members first."""
    missing = wo.left[r, 0]
    first = ro.members[r + 1]
    while missing > 0 and first > ro.members[r]:
        first -= 1
        if wo.named[ro.member[first]] == 0:
            missing -= 1
    for i in range(first, ro.members[r + 1]):
        if wo.named[ro.member[i]] == 0:
            sub = sub_row + i - ro.members[r]
            serve_gang(ma, cl, ids, ro, fa, ho, wo, sc, sub, sizes)
            wo.done[sub] = 1
            if covered(wo.left[sub], ro.width[sub]):
                wo.served[r] += 1


@inner
def serve_row(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, sub_row: int, sizes: I64,
) -> None:  # fmt: skip
    """One row's whole turn."""
    keep_leaving(ma, cl, ids, ro, fa, ho, wo, sc, r)
    if not ro.blocked[r]:
        if ro.domain_key[r] >= 0:
            serve_gang(ma, cl, ids, ro, fa, ho, wo, sc, r, sizes)
        elif not covered(wo.left[r], ro.width[r]):
            commit(ma, ro, wo, sc, r, serve_plain(ma, cl, ids, ro, fa, ho, wo, sc, r))
            if sub_row >= 0 and wo.left[r, 0] > 0:
                _serve_rest_as_gangs(ma, cl, ids, ro, fa, ho, wo, sc, r, sub_row, sizes)
    expect(ma, cl, ids, ro, fa, ho, wo, sc, r)
    wo.done[r] = 1


@inner
def assign(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, first: int, last: int, sub_rows: I64, sizes: I64,
) -> None:  # fmt: skip
    """The serial pass over rows first..last-1; it defines the outcome."""
    for r in range(first, last):
        if wo.cancel[0] != 0:
            return
        serve_row(ma, cl, ids, ro, fa, ho, wo, sc, r, sub_rows[r], sizes)
