"""From the phases' arrays to a plan: actions, stamps, verdicts, and the next carry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bigfleet.decision.carry import Carry
from bigfleet.decision.cycle_arrays import CycleArrays
from bigfleet.decision.kernels.layout import I32, I64, IDLE, PHANTOM
from bigfleet.decision.kinds import ActionKind
from bigfleet.decision.plan import ActionColumns, Counters, Plan, Stamps, VerdictColumns
from bigfleet.decision.policy import VOLUNTARY_GRACE_SECONDS, Policy
from bigfleet.decision.unmet_reasons import matching_supply, reasons, still_short
from bigfleet.decision.work_budget import Share
from bigfleet.model.columns import MachineColumns

Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.integer]


def finish(
    c: CycleArrays, fleet: MachineColumns, share: Share, policy: Policy, carry: Carry, now: int,
    counters: Counters, reclaims: I32, releases: I32, since: I64, counts: I64,
) -> Plan:  # fmt: skip
    """The plan of a cycle whose phases are done."""
    demand = share.decided
    top = np.concatenate([np.arange(c.rows), c.ro.parent[c.rows :]]).astype(np.int32)
    actions = _actions(c, fleet, top, reclaims, releases)
    stamps, preempted_for, last = _number(c, carry, now)
    satisfied, deficit, freed = _deficits(c)
    unmet = np.flatnonzero(~satisfied)
    matching = matching_supply(c, fleet, unmet)
    short = still_short(c, unmet)
    reason = reasons(c, policy, unmet, matching, short)
    unmet_since, homeless = _ages(c, fleet, carry, now, satisfied)
    # One entry more, so that "not claimed" (-1) finds -1, also where the plan has no rows.
    claimed = np.append(top, np.int32(-1))[c.wo.claim].astype(np.int32)
    representative = demand.identity[c.normal.members[c.normal.members_at[:-1]]]
    verdicts = VerdictColumns(
        need=c.normal.need,
        members_at=c.normal.members_at,
        members=c.normal.members,
        satisfied=satisfied,
        deficit=deficit,
        short=_by_resource(c, short),
        scale=c.amounts.scale,
        claimed=counts[:, 0].astype(np.int32),
        from_idle=counts[:, 1].astype(np.int32),
        from_speculative=counts[:, 2].astype(np.int32),
        domain=c.wo.domain[: c.rows],
        domain_key=c.ro.domain_key[: c.rows],
        satisfiable=c.wo.satisfiable[: c.rows] > 0,
        best=c.wo.best[: c.rows],
        best_mille=c.wo.best_mille[: c.rows],
        best_ok=c.wo.best_ok[: c.rows] > 0,
        victims=c.wo.victims[: c.rows],
        freed=freed,
        reason=reason,
        matching=matching,
        unmet_since=unmet_since[representative],
        homeless_since=homeless[representative],
    )
    return Plan(
        fleet=fleet,
        demand=demand,
        actions=actions,
        claimed=claimed,
        stamps=stamps,
        preempted_for=preempted_for,
        phantoms=frozenset(reclaims[(c.ma.flags[reclaims] & PHANTOM) > 0].tolist()),
        moved_away=_moved_away(c, reclaims),
        verdicts=verdicts,
        domain_names=c.domain_names,
        counters=counters,
        carry=replace(
            carry,
            last_sequence=last,
            unclaimed_since=since,
            unmet_since=unmet_since,
            homeless_since=homeless,
            folds=c.normal.folds,
            frozen=share.frozen,
        ),
        frozen=share.frozen,
        withheld=share.withheld,
        seconds={},
    )


def _actions(
    c: CycleArrays, fleet: MachineColumns, top: I32, reclaims: I32, releases: I32
) -> ActionColumns:
    """Keeps and takes by row, then preemptions by row, then reclaims, then releases."""
    wo, rank = c.wo, fleet.rank
    kept = np.flatnonzero(wo.kept)
    taken = np.flatnonzero((wo.taken >= 0) & (wo.claim >= 0))
    preempted = np.flatnonzero(wo.preempt >= 0)
    kept = kept[np.lexsort((rank[kept], wo.claim[kept]))]
    taken = taken[np.lexsort((rank[taken], top[wo.taken[taken]]))]
    preempted = preempted[np.lexsort((rank[preempted], wo.preempt[preempted]))]
    price = fleet.classes.price[fleet.cls[reclaims]]
    pods = fleet.pods[reclaims]
    reclaims = reclaims[np.lexsort((rank[reclaims], -price, np.maximum(pods, 0), pods < 0))]
    releases = releases[np.argsort(rank[releases], kind="stable")]
    idle = fleet.state[taken] == IDLE
    kinds: list[I64] = [
        np.full(len(kept), ActionKind.KEEP),
        np.where(idle, ActionKind.BOOTSTRAP, ActionKind.PROVISION),
        np.full(len(preempted), ActionKind.PREEMPT),
        np.full(len(reclaims), ActionKind.RECLAIM),
        np.full(len(releases), ActionKind.DELETE),
    ]
    rows: list[Numbers] = [
        top[wo.claim[kept]],
        top[wo.taken[taken]],
        wo.preempt[preempted],
        np.full(len(reclaims), -1),
        np.full(len(releases), -1),
    ]
    clusters: list[Numbers] = [
        fleet.cluster[kept],
        c.ro.cluster[wo.taken[taken]],
        fleet.cluster[preempted],
        fleet.cluster[reclaims],
        np.full(len(releases), -1),
    ]
    graces: list[Numbers] = [
        np.zeros(len(kept) + len(taken), np.int64),
        wo.grace[preempted],
        np.full(len(reclaims), VOLUNTARY_GRACE_SECONDS),
        np.zeros(len(releases), np.int64),
    ]
    machines: list[Numbers] = [kept, taken, preempted, reclaims, releases]
    return ActionColumns(
        kind=np.concatenate(kinds).astype(np.int8),
        machine=np.concatenate(machines).astype(np.int32),
        cluster=np.concatenate(clusters).astype(np.int32),
        row=np.concatenate(rows).astype(np.int32),
        grace=np.concatenate(graces).astype(np.int32),
    )


def _moved_away(c: CycleArrays, reclaims: I32) -> dict[int, int]:
    """Of the machines to be reclaimed, those whose gang serves in another domain, with its row."""
    if not (c.ro.domain_key >= 0).any():
        return {}
    stamped = reclaims[c.ma.stamp[reclaims] >= 0]
    stamp = c.ma.stamp[stamped]
    exact = c.ids.exact[stamp]
    row = np.where(exact >= 0, exact, c.ids.first[c.ids.key[stamp]])
    settled = (row >= 0) & (c.ro.domain_key[row] >= 0) & (c.wo.domain[row] >= 0)
    found = {}
    for m, r in zip(stamped[settled].tolist(), row[settled].tolist(), strict=True):
        key = c.ro.domain_key[r]
        column, cls = c.fa.domain_column[key], c.ma.cls[m]
        domain = c.ma.columns[column, m] if column >= 0 else c.fa.domain_of_class[key, cls]
        if domain != c.wo.domain[r]:
            found[m] = r
    return found


def _number(c: CycleArrays, carry: Carry, now: int) -> tuple[Stamps, Stamps, int]:
    """Stamps are numbered by row, and then in the order they were given."""
    wo = c.wo
    base = max(carry.last_sequence + 1, now)
    stamped = np.flatnonzero(wo.identity >= 0).astype(np.int32)
    preempted = np.flatnonzero(wo.preempt >= 0).astype(np.int32)
    same = wo.turn[stamped] < 0
    fresh, kept = stamped[~same], stamped[same]
    machine = np.concatenate([fresh, preempted])
    position = np.concatenate(
        [c.ro.position[wo.claim[fresh]], c.ro.position[wo.preempt[preempted]]]
    )
    order = np.lexsort((wo.turn[machine], position))
    sequence = np.empty(len(machine), np.int64)
    sequence[order] = base + np.arange(len(machine))
    last = int(base + len(machine) - 1) if len(machine) else carry.last_sequence
    stamps = Stamps(
        machine=np.concatenate([fresh, kept]),
        identity=np.concatenate([wo.identity[fresh], wo.identity[kept]]),
        sequence=np.concatenate([sequence[: len(fresh)], c.ma.sequence[kept]]),
    )
    meant = _next_members(c)[wo.preempt[preempted]] if len(preempted) else preempted
    return stamps, Stamps(preempted, meant.astype(np.int32), sequence[len(fresh) :]), last


def _next_members(c: CycleArrays) -> I32:
    """Per row: the identity its next machine is stamped with."""
    named = c.wo.named[c.ro.member] > 0
    out = c.ro.member[c.ro.members[:-1]].copy()
    many = np.flatnonzero(np.diff(c.ro.members[: c.rows + 1]) > 1)
    for r in many:
        lo, hi = c.ro.members[r], c.ro.members[r + 1]
        free = np.flatnonzero(~named[lo:hi])
        if len(free):
            out[r] = c.ro.member[lo + free[0]]
    return out


def _deficits(c: CycleArrays) -> tuple[Bools, I64, I64]:
    """Satisfied rows, what is missing and what was freed per resource, in counted units."""
    left = np.maximum(c.wo.left[: c.rows], 0)
    served = c.wo.served[: c.rows]
    left[served > 0, 0] = np.maximum(left[served > 0, 0] - served[served > 0], 0)
    width = np.arange(left.shape[1]) < c.ro.width[: c.rows, None]
    satisfied: Bools = np.logical_not(((left > 0) & width).any(axis=1))
    return satisfied, _by_resource(c, left), _by_resource(c, c.wo.freed[: c.rows])


def _by_resource(c: CycleArrays, own: I64) -> I64:
    out = np.zeros((c.rows, c.ro.unit.shape[1]), np.int64)
    if not own.any():
        return out
    rows = np.flatnonzero(own.any(axis=1))
    uniform = rows[c.ro.uniform[rows] > 0]
    other = rows[c.ro.uniform[rows] == 0]
    out[uniform] = own[uniform, :1] * c.ro.unit[uniform]
    for j in range(own.shape[1]):
        inside = other[j < c.ro.width[other]]
        out[inside, c.ro.dims[inside, j]] = own[inside, j]
    return out


def _ages(
    c: CycleArrays, fleet: MachineColumns, carry: Carry, now: int, satisfied: Bools
) -> tuple[I64, I64]:
    """Per identity: since when its need is unmet; since when its gang finds no domain."""
    size = max(1, fleet.symbols.identity_count)
    member = c.ro.member[: c.ro.members[c.rows]]
    row = np.repeat(np.arange(c.rows), np.diff(c.ro.members[: c.rows + 1]))

    def since(before: I64, still: Bools) -> I64:
        out = np.zeros(size, np.int64)
        known = np.zeros(size, np.int64)
        known[: len(before)] = before[:size]
        mine = member[still[row]]
        out[mine] = np.where(known[mine] > 0, known[mine], max(now, 1))
        return out

    homeless = ~satisfied & (c.ro.domain_key[: c.rows] >= 0) & (c.wo.satisfiable[: c.rows] == 0)
    return since(carry.unmet_since, ~satisfied), since(carry.homeless_since, homeless)
