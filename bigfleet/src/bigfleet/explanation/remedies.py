"""Remedies: what a person could do about an unmet need. Candidates only; `explain` tries them.

What undoes the named blockers comes first, then what helps in general: more machines, a higher
priority, asking for less, fewer conditions. Amounts are worked out from counts and may turn out too
small; then the trial says how far the remedy gets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bigfleet.decision import ActionKind, Plan
from bigfleet.explanation.blockers import Blocker
from bigfleet.explanation.changes import (
    HIGHEST_PRIORITY,
    AcrossDomains,
    AddedToleration,
    ChangedAggregate,
    ClusterConnected,
    Interruptible,
    MachinesAdded,
    OfferingsRestocked,
    PieceSize,
    SituationChange,
    WithoutDimension,
    WithoutRequirement,
    WithPriority,
    WithQuotas,
    WithSpendLimit,
    as_pairs,
)
from bigfleet.explanation.situation import Effect, Situation
from bigfleet.explanation.supply import SupplyCounts, asked_for
from bigfleet.model import CapacityType, MachineState, Need, RequirementOperator
from bigfleet.model.amounts.resources import is_uniform_multiple
from bigfleet.model.blockers import BlockerKind
from bigfleet.model.columns.classes import Offering, Pool
from bigfleet.model.demand.profile import SpreadMode

K = BlockerKind
S = MachineState


@dataclass(frozen=True)
class Remedy:
    """One or two changes that a person could make."""

    changes: tuple[SituationChange, ...]


@dataclass(frozen=True)
class Case:
    """An unmet need with all that remedies are worked out from."""

    situation: Situation
    plan: Plan
    rows: Sequence[int]
    members: Sequence[int]
    supply: SupplyCounts
    now: Effect
    """What the plan gives it."""

    @property
    def need(self) -> Need:
        """The first of the rows of the demand that the subject stands for; most are alone."""
        return self.situation.demand.need(self.members[0])

    @property
    def alone(self) -> bool:
        """Whether it is one row of the demand and not several gangs that fold."""
        return len(self.members) == 1


def remedies(case: Case, blockers: Sequence[Blocker], lifted: Plan | None) -> Iterator[Remedy]:
    """Candidates, the likeliest first; ``lifted`` is the plan with all blockers removed."""
    undone = [_undo(case, blocker, lifted) for blocker in blockers]
    if blockers and all(change is not None for change in undone):
        yield Remedy(tuple(change for change in undone if change is not None))
    yield from (Remedy((change,)) for change in _general(case))


def _undo(case: Case, blocker: Blocker, lifted: Plan | None) -> SituationChange | None:
    """What a person would do about one blocker."""
    match blocker.kind:
        case K.REQUIREMENT:
            assert blocker.requirement is not None
            return WithoutRequirement(blocker.requirement)
        case K.TAINT:
            return AddedToleration(blocker.taint)
        case K.DIMENSION:
            # What machines do offer is scarce: the remedy is to ask for less, or to add machines.
            offered = case.supply.offered_anywhere(case.need).get(blocker.dimension, 0)
            return None if offered else WithoutDimension(blocker.dimension)
        case K.SIZE:
            return _smaller_pieces(case)
        case K.QUOTA:
            return None if lifted is None else _quotas(case, lifted)
        case K.SPEND_LIMIT:
            return None if lifted is None else _spend(case, lifted)
        case K.PRIORITY:
            return _priority(case)
        case K.AMOUNT:
            return None if lifted is None or not case.alone else _asking(lifted, case.members[0])
        case K.BOOTSTRAP:
            return ClusterConnected()
        case K.INTERRUPTION:
            return Interruptible()
        case K.TOPOLOGY:
            return AcrossDomains()
        case K.STOCK_OUT:
            return _restock(case)
        case _:
            return None


def _general(case: Case) -> Iterator[SituationChange]:
    need = case.need
    added = _machines(case)
    if added is not None:
        yield added
    priority = _priority(case)
    if priority is not None:
        yield priority
    if case.alone and (less := _what_it_gets(case)) is not None:
        yield less
    held = int(case.supply.counts(need).sum())
    for requirement in need.profile.requirements:
        if requirement.operator is not RequirementOperator.SAME:
            change = WithoutRequirement(requirement)
            if int(case.supply.counts(change.of(need)).sum()) > held:
                yield change
    if need.profile.same or any(s.when is SpreadMode.DO_NOT_SCHEDULE for s in need.profile.spread):
        yield AcrossDomains()
    if (restock := _restock(case)) is not None:
        yield restock


def _smaller_pieces(case: Case) -> PieceSize | None:
    """Pieces as large as the machine that matches and holds most of one."""
    need, best, share = case.need, None, 0.0
    for c in case.supply.present(need):
        offer = case.supply.offer(need, c)
        shares = [offer[n] / need.min_unit[n] for n in asked_for(need) if need.min_unit.get(n)]
        if shares and min(shares) > share:
            share = min(shares)
            best = {n: min(need.min_unit.get(n, 0), offer[n]) for n in need.min_unit}
    return None if best is None else PieceSize(as_pairs(best))


def _ahead(plan: Plan, rows: Sequence[int]) -> npt.NDArray[np.int32]:
    """Speculative machines that the plan takes for these rows or for rows before them."""
    actions, last = plan.actions, max(rows)
    mine = (actions.kind == ActionKind.PROVISION) & (actions.row <= last)
    found: npt.NDArray[np.int32] = actions.machine[mine]
    return found


def _quotas(case: Case, lifted: Plan) -> WithQuotas | None:
    """Slices as large as the plan without them needs, where that is more than there is."""
    fleet, policy = case.situation.fleet, case.situation.policy
    table = fleet.classes
    out = (fleet.state > 0) & (fleet.state != S.SPECULATIVE)
    used = np.bincount(table.pool[fleet.cls[out]], minlength=len(table.pools))
    rows = _rows_in(lifted, case.members)
    taken = _ahead(lifted, rows)
    # Machines that are only tried are Idle, so what is taken here is part of the fleet.
    more = np.bincount(table.pool[fleet.cls[taken]], minlength=len(table.pools))
    slots: list[tuple[Pool, int | None]] = []
    for number, pool in enumerate(table.pools):
        wanted = int(used[number] + more[number])
        if pool in policy.quotas and more[number] and wanted > policy.quotas[pool]:
            slots.append((pool, wanted))
    return WithQuotas(tuple(slots)) if slots else None


def _spend(case: Case, lifted: Plan) -> WithSpendLimit | None:
    """A limit as high as what the plan without one spends."""
    table, fleet = case.situation.fleet.classes, case.situation.fleet
    taken = _ahead(lifted, _rows_in(lifted, case.members))
    kinds = (int(CapacityType.ON_DEMAND), int(CapacityType.SPOT))
    price = np.where(np.isin(table.capacity_type, kinds), table.price, 0)
    wanted = case.supply.spent() + int(price[fleet.cls[taken]].sum())
    limit = case.situation.policy.spend_limit_micro
    return WithSpendLimit(wanted) if limit is not None and wanted > limit else None


def _rows_in(plan: Plan, members: Sequence[int]) -> list[int]:
    v = plan.verdicts
    of = np.repeat(np.arange(len(v)), np.diff(v.members_at))
    rows: list[int] = of[np.isin(v.members, members)].tolist()
    return rows


def _asking(lifted: Plan, member: int) -> ChangedAggregate:
    return ChangedAggregate(as_pairs(lifted.demand.need(member).aggregate))


def _what_it_gets(case: Case) -> ChangedAggregate | None:
    """As much as it gets as things are; whole pieces where it is made of them."""
    need, got = case.need, dict(case.now.got)
    units = is_uniform_multiple(need.aggregate, need.min_unit)
    if units is not None:
        whole = min(got[n] // amount for n, amount in need.min_unit.items() if amount > 0)
        got = {n: whole * amount for n, amount in need.min_unit.items()}
    if not all(got.get(n, 0) > 0 for n, amount in need.aggregate.items() if amount > 0):
        return None
    return ChangedAggregate(as_pairs(got))


def _priority(case: Case) -> WithPriority | None:
    """The lowest priority at which machines of lower needs would be enough."""
    need, short = case.need, case.now.shortfall
    held = case.supply.held_by_priority(need, case.plan, case.rows)
    found = None
    for priority, counts in sorted(held.items()):
        for c in np.flatnonzero(counts).tolist():
            for name, amount in case.supply.gives(need, c).items():
                short[name] = short.get(name, 0) - int(counts[c]) * amount
        found = max(priority, need.profile.priority) + 1
        if all(amount <= 0 for amount in short.values()):
            break
    if found is None or found > HIGHEST_PRIORITY:
        return None
    return WithPriority(found)


def _machines(case: Case) -> MachinesAdded | None:
    """More machines like the one that serves the need for the least money."""
    need, fleet = case.need, case.situation.fleet
    missing = case.now.shortfall
    best: tuple[float, int, int, int] | None = None
    for c in case.supply.present(need):
        give = case.supply.gives(need, c)
        if not give or not missing:
            continue
        if need.profile.interruption.pinned and fleet.classes.probability[c] > 0:
            continue
        count = max(-(-amount // give[name]) for name, amount in missing.items())
        cost = float(count * int(fleet.classes.price[c]))
        if best is None or (cost, count, c) < best[:3]:
            best = (cost, count, c, 0)
    if best is None:
        return None
    _, count, cls, _ = best
    return MachinesAdded(_one_of(case, cls), count)


def _one_of(case: Case, cls: int) -> str:
    """A machine of this class that matches; in the gang's best domain where it has one."""
    fleet = case.situation.fleet
    rows = np.flatnonzero(case.supply.matching(case.need) & (fleet.cls == cls))
    v, row = case.plan.verdicts, case.rows[0]
    domain = int(v.domain[row]) if v.domain[row] >= 0 else int(v.best[row][0])
    key = case.need.profile.same[0].key if len(case.need.profile.same) == 1 else ""
    if domain >= 0 and key in fleet.topology:
        inside = rows[fleet.topology[key][rows] == domain]
        rows = inside if len(inside) else rows
    return fleet.ids[int(rows[np.argmin(fleet.rank[rows])])]


def _restock(case: Case) -> OfferingsRestocked | None:
    """The offerings that match and are out of stock."""
    fleet, cooling = case.situation.fleet, case.situation.carry.cooling(case.situation.now)
    if not cooling:
        return None
    table = fleet.classes
    found: set[Offering] = set()
    for c in case.supply.present(case.need):
        offering = table.offerings[int(table.offering[c])]
        if offering in cooling and case.supply.gives(case.need, c):
            found.add(offering)
    return OfferingsRestocked(tuple(sorted(found))) if found else None
