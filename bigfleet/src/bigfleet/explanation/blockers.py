"""Blockers: the one or two things whose removal makes a need met, and nothing smaller does.

Candidates are listed in the order in which they are tried. What the verdict's reason points at
comes first, so that where several single removals would do, the one is named that agrees with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from bigfleet.decision import Reason
from bigfleet.explanation.changes import (
    HIGHEST_PRIORITY,
    AcrossDomains,
    AddedToleration,
    ChangedAggregate,
    ClusterConnected,
    Interruptible,
    OfferingsRestocked,
    PieceSize,
    SituationChange,
    WithoutDimension,
    WithoutRequirement,
    WithPriority,
    WithQuotas,
    WithSpendLimit,
    apply_all,
    as_pairs,
)
from bigfleet.explanation.situation import Situation
from bigfleet.explanation.supply import IgnoredLimits, SupplyCounts
from bigfleet.model import Need, Requirement, RequirementOperator, Taint, defaults_of
from bigfleet.model.amounts.resources import is_uniform_multiple
from bigfleet.model.blockers import BlockerKind
from bigfleet.model.demand.profile import SpreadMode
from bigfleet.model.facts import ClusterFacts

K = BlockerKind

_FIRST: Final = {
    Reason.BOOTSTRAP_ERROR: (K.BOOTSTRAP,),
    Reason.NO_MATCHING_SUPPLY: (K.TAINT, K.REQUIREMENT, K.SIZE, K.DIMENSION),
    Reason.TOPOLOGY_UNSATISFIABLE: (K.TOPOLOGY,),
    Reason.QUOTA: (K.QUOTA,),
    Reason.SPEND_LIMIT: (K.SPEND_LIMIT,),
    Reason.STOCK_OUT: (K.STOCK_OUT,),
    Reason.PRIORITY_STARVED: (K.INTERRUPTION, K.PRIORITY, K.AMOUNT),
    Reason.PREEMPTION_EXHAUSTED: (K.PRIORITY, K.AMOUNT),
}
_ORDER: Final = tuple(kind for kind in K if kind)


@dataclass(frozen=True)
class Blocker:
    """One thing that may stand in the way."""

    kind: BlockerKind
    requirement: Requirement | None = None
    dimension: str = ""
    taint: Taint = field(default=Taint(""))


def candidates(
    situation: Situation, need: Need, supply: SupplyCounts, reason: Reason
) -> list[Blocker]:
    """What could stand in the way of this need, in the order in which it is tried."""
    found = list(_candidates(situation, need, supply))
    first = _FIRST.get(reason, ())
    order = [*first, *(kind for kind in _ORDER if kind not in first)]
    # A resource that machines do offer is a blocker only where nothing else is.
    scarce = [b for b in found if b.kind is K.DIMENSION and _is_offered(b, need, supply)]
    rest = [b for b in found if b not in scarce]
    return sorted(rest, key=lambda blocker: order.index(blocker.kind)) + scarce


def _is_offered(blocker: Blocker, need: Need, supply: SupplyCounts) -> bool:
    return supply.offered_anywhere(need).get(blocker.dimension, 0) > 0


def _candidates(situation: Situation, need: Need, supply: SupplyCounts) -> Iterator[Blocker]:
    facts, profile = situation.demand.facts, need.profile
    fact = facts.get(need.cluster, ClusterFacts())
    if fact.blocked:
        yield Blocker(K.BOOTSTRAP)
    for requirement in profile.requirements:
        if requirement.operator is not RequirementOperator.SAME:
            yield Blocker(K.REQUIREMENT, requirement=requirement)
    for key, value in defaults_of(profile.requirements, fact.default_arch, fact.default_os):
        default = Requirement(key, RequirementOperator.IN, (value,))
        yield Blocker(K.REQUIREMENT, requirement=default)
    for taint in supply.untolerated(need):
        yield Blocker(K.TAINT, taint=taint)
    if any(need.min_unit.values()) and not supply.fits_somewhere(need):
        yield Blocker(K.SIZE)
    offered = supply.offered_anywhere(need)
    for name in offered:
        # Without its only resource a need asks for nothing; that explains it only where no machine
        # offers that resource.
        if len(offered) > 1 or not offered[name]:
            yield Blocker(K.DIMENSION, dimension=name)
    if profile.interruption.pinned:
        yield Blocker(K.INTERRUPTION)
    if profile.same or any(s.when is SpreadMode.DO_NOT_SCHEDULE for s in profile.spread):
        yield Blocker(K.TOPOLOGY)
    if situation.carry.cooling(situation.now):
        yield Blocker(K.STOCK_OUT)
    if situation.policy.quotas:
        yield Blocker(K.QUOTA)
    if situation.policy.spend_limit_micro is not None:
        yield Blocker(K.SPEND_LIMIT)
    if profile.priority < HIGHEST_PRIORITY:
        yield Blocker(K.PRIORITY)
    yield Blocker(K.AMOUNT)


def removed(situation: Situation, members: Sequence[int], blockers: Sequence[Blocker]) -> Situation:
    """The situation without these blockers."""
    changes = [change for b in blockers if (change := _removal(b)) is not None]
    situation = apply_all(situation, members, changes)
    if any(b.kind is K.AMOUNT for b in blockers):
        # Last: what matches depends on the other removals.
        supply = SupplyCounts(situation)
        needs = {row: situation.demand.need(row) for row in members}
        asking = {row: within(need, supply.total(need)) for row, need in needs.items()}
        situation = situation.with_needs(asking)
    return situation


def _removal(blocker: Blocker) -> SituationChange | None:
    match blocker.kind:
        case K.BOOTSTRAP:
            return ClusterConnected()
        case K.REQUIREMENT:
            assert blocker.requirement is not None
            return WithoutRequirement(blocker.requirement)
        case K.TAINT:
            return AddedToleration(blocker.taint)
        case K.SIZE:
            return PieceSize()
        case K.DIMENSION:
            return WithoutDimension(blocker.dimension)
        case K.INTERRUPTION:
            return Interruptible()
        case K.TOPOLOGY:
            return AcrossDomains()
        case K.STOCK_OUT:
            return OfferingsRestocked()
        case K.QUOTA:
            return WithQuotas()
        case K.SPEND_LIMIT:
            return WithSpendLimit()
        case K.PRIORITY:
            return WithPriority(HIGHEST_PRIORITY)
        case _:
            return None


def within(need: Need, total: dict[str, int]) -> Need:
    """The need asking for no more than this; as it is where this is nothing."""
    if not all(total.get(name, 0) > 0 for name, amount in need.aggregate.items() if amount > 0):
        return need
    units = is_uniform_multiple(need.aggregate, need.min_unit)
    if units is not None:
        held = min(
            total.get(name, 0) // amount for name, amount in need.min_unit.items() if amount > 0
        )
        units = min(units, held)
        aggregate = {name: units * amount for name, amount in need.min_unit.items()}
    else:
        aggregate = {
            name: min(amount, total.get(name, 0)) for name, amount in need.aggregate.items()
        }
    return ChangedAggregate(as_pairs(aggregate)).of(need)


def lifted_by(blockers: Sequence[Blocker]) -> IgnoredLimits:
    """Which limits a count must leave out."""
    kinds = {blocker.kind for blocker in blockers}
    return IgnoredLimits(K.STOCK_OUT in kinds, K.QUOTA in kinds, K.SPEND_LIMIT in kinds)


def _leaves_nothing(need: Need, blockers: Sequence[Blocker], supply: SupplyCounts) -> bool:
    """Whether the need would be met only because it asks for nothing that machines offer."""
    gone = {blocker.dimension for blocker in blockers if blocker.kind is K.DIMENSION}
    asked = [name for name, amount in need.aggregate.items() if amount > 0]
    offered = supply.offered_anywhere(need)
    return gone.issuperset(asked) and any(offered[name] for name in gone)


def worth_trying(
    situation: Situation, members: Sequence[int], blockers: Sequence[Blocker], supply: SupplyCounts
) -> bool:
    """False where counting alone shows that removing these is not enough, or explains nothing."""
    if _leaves_nothing(situation.demand.need(members[0]), blockers, supply):
        return False
    kinds = {blocker.kind for blocker in blockers}
    changes = [
        change
        for b in blockers
        if b.kind not in (K.AMOUNT, K.BOOTSTRAP) and (change := _removal(b)) is not None
    ]
    for row in members:
        need = situation.demand.need(row)
        for change in changes:
            alter = getattr(change, "of", None)
            need = need if alter is None else alter(need)
        if K.AMOUNT in kinds:
            total = supply.total(need)
            fewer = within(need, total)
            if fewer.aggregate == need.aggregate:
                # Its amount does not stand in the way.
                return False
            need = fewer
        if not supply.may_suffice(need, lifted_by(blockers)):
            return False
    return True
