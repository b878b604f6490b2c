"""Single changes to a situation: what a blocker's removal and a remedy come down to.

Each is a value that tells exactly what is different; `applied` makes the situation in which it is.
Changes to the need apply to every row of the demand that the subject stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from bigfleet.explanation.situation import Situation
from bigfleet.model import MachineState, Need, PenaltyBucket, Profile, Requirement, Resources
from bigfleet.model.columns import MachineColumns
from bigfleet.model.columns.classes import Offering, Pool
from bigfleet.model.demand.profile import SpreadMode
from bigfleet.model.demand.requirements import RequirementOperator
from bigfleet.model.demand.taints import Taint, Toleration

T = TypeVar("T", bound=np.generic)

HIGHEST_PRIORITY: Final = 2**31 - 1
LARGEST_FINITE: Final = PenaltyBucket(PenaltyBucket.PINNED - 1)
_ADDED: Final = "\U0010ffff"
"""Begins the ids of machines that are only tried: they come last in every order."""


class SituationChange(Protocol):
    """Something that could be different."""

    def applied(self, situation: Situation, members: Sequence[int]) -> Situation:
        """The situation in which it is."""


class _NeedChange:
    """A change to the need itself."""

    def applied(self, situation: Situation, members: Sequence[int]) -> Situation:
        """The situation in which the subject asks for something else."""
        demand = situation.demand
        return situation.with_needs({row: self.of(demand.need(row)) for row in members})

    def of(self, need: Need) -> Need:
        """The need with the change."""
        raise NotImplementedError


def _with_profile(need: Need, **changed: object) -> Need:
    known = need.profile
    parts: dict[str, object] = {
        "requirements": known.requirements, "spread": known.spread, "priority": known.priority,
        "interruption": known.interruption, "reclamation": known.reclamation,
        "tolerations": known.tolerations,
    }  # fmt: skip
    return replace(need, profile=Profile.of(**{**parts, **changed}))  # type: ignore[arg-type]


@dataclass(frozen=True)
class WithoutRequirement(_NeedChange):
    """The need does not have this requirement, its own or a default of its cluster."""

    requirement: Requirement

    def of(self, need: Need) -> Need:
        """The need with the change."""
        kept = [r for r in need.profile.requirements if r != self.requirement]
        if len(kept) == len(need.profile.requirements):
            kept.append(Requirement(self.requirement.key, RequirementOperator.EXISTS))
        return _with_profile(need, requirements=kept)


@dataclass(frozen=True)
class AddedToleration(_NeedChange):
    """The need tolerates a taint."""

    taint: Taint

    def of(self, need: Need) -> Need:
        """The need with the change."""
        more = Toleration.of(self.taint.key, "Equal", self.taint.value, self.taint.effect)
        return _with_profile(need, tolerations=(*need.profile.tolerations, more))


@dataclass(frozen=True)
class WithoutDimension(_NeedChange):
    """The need does not ask for this resource."""

    name: str

    def of(self, need: Need) -> Need:
        """The need with the change."""
        return replace(
            need, aggregate=_but(need.aggregate, self.name), min_unit=_but(need.min_unit, self.name)
        )


def _but(amounts: Resources, name: str) -> dict[str, int]:
    return {known: amount for known, amount in amounts.items() if known != name}


@dataclass(frozen=True)
class PieceSize(_NeedChange):
    """Every machine it uses must hold only so much; nothing at all where empty."""

    unit: tuple[tuple[str, int], ...] = ()

    def of(self, need: Need) -> Need:
        """The need with the change."""
        return replace(need, min_unit=dict(self.unit))


@dataclass(frozen=True)
class AcrossDomains(_NeedChange):
    """Its machines may be in any domains: neither Same nor a spread that must be kept."""

    def of(self, need: Need) -> Need:
        """The need with the change."""
        spread = [s for s in need.profile.spread if s.when is not SpreadMode.DO_NOT_SCHEDULE]
        return _with_profile(
            need, requirements=need.profile.without_same().requirements, spread=spread
        )


@dataclass(frozen=True)
class Interruptible(_NeedChange):
    """Its interruption penalty is the largest one that is not pinned."""

    def of(self, need: Need) -> Need:
        """The need with the change."""
        return _with_profile(need, interruption=LARGEST_FINITE)


@dataclass(frozen=True)
class WithPriority(_NeedChange):
    """It has this priority."""

    priority: int

    def of(self, need: Need) -> Need:
        """The need with the change."""
        return _with_profile(need, priority=self.priority)


@dataclass(frozen=True)
class ChangedAggregate(_NeedChange):
    """It asks for so much in all."""

    aggregate: tuple[tuple[str, int], ...]

    def of(self, need: Need) -> Need:
        """The need with the change."""
        return replace(need, aggregate=dict(self.aggregate))


@dataclass(frozen=True)
class WithQuotas:
    """Quota slices of these pools are so large; None: no limit, no pool means every slice."""

    slots: tuple[tuple[Pool, int | None], ...] = ()

    def applied(self, situation: Situation, members: Sequence[int]) -> Situation:
        """The situation with these slices."""
        kept: dict[Pool, int] = dict(situation.policy.quotas) if self.slots else {}
        for pool, slots in self.slots:
            kept.pop(pool, None)
            if slots is not None:
                kept[pool] = slots
        return replace(situation, policy=replace(situation.policy, quotas=kept))


@dataclass(frozen=True)
class WithSpendLimit:
    """The spend limit is so many micro-dollars per hour; None: no limit."""

    micro: int | None = None

    def applied(self, situation: Situation, members: Sequence[int]) -> Situation:
        """The situation with this limit."""
        return replace(situation, policy=replace(situation.policy, spend_limit_micro=self.micro))


@dataclass(frozen=True)
class OfferingsRestocked:
    """These offerings are in stock again; all of them where none is named."""

    offerings: tuple[Offering, ...] = ()

    def applied(self, situation: Situation, members: Sequence[int]) -> Situation:
        """The situation in which they are."""
        known = situation.carry.stock_outs
        kept = {o: wait for o, wait in known.items() if self.offerings and o not in self.offerings}
        return replace(situation, carry=replace(situation.carry, stock_outs=kept))


@dataclass(frozen=True)
class ClusterConnected:
    """Its cluster accepts machines: it has a session and renders bootstrap data."""

    def applied(self, situation: Situation, members: Sequence[int]) -> Situation:
        """The situation in which it does."""
        cluster = situation.demand.need(members[0]).cluster
        facts = dict(situation.demand.facts)
        facts[cluster] = replace(facts[cluster], blocked=False)
        return replace(situation, demand=replace(situation.demand, facts=facts))


@dataclass(frozen=True)
class MachinesAdded:
    """So many more Idle machines that serve no cluster, each like this one."""

    like: str
    count: int

    def applied(self, situation: Situation, members: Sequence[int]) -> Situation:
        """The situation with these machines."""
        fleet = situation.fleet
        row = list(fleet.ids).index(self.like)
        return replace(situation, fleet=_with_copies(fleet, row, self.count, situation.now))


def _with_copies(fleet: MachineColumns, row: int, count: int, now: int) -> MachineColumns:
    def more(column: npt.NDArray[T], value: int) -> npt.NDArray[T]:
        return np.concatenate([column, np.full(count, value, column.dtype)])

    first, placed = len(fleet), len(fleet.order)
    added = np.arange(count, dtype=np.int32)
    return replace(
        fleet,
        state=more(fleet.state, MachineState.IDLE),
        cls=more(fleet.cls, int(fleet.cls[row])),
        cluster=more(fleet.cluster, -1),
        stamp=more(fleet.stamp, -1),
        sequence=more(fleet.sequence, 0),
        leaving_for=more(fleet.leaving_for, -1),
        flags=more(fleet.flags, 0),
        idle_since=more(fleet.idle_since, now),
        pods=more(fleet.pods, -1),
        topology={key: more(found, int(found[row])) for key, found in fleet.topology.items()},
        order=np.concatenate([fleet.order, first + added]),
        rank=np.concatenate([fleet.rank, placed + added]),
        ids=[*fleet.ids, *added_ids(count)],
    )


def added_ids(count: int) -> list[str]:
    """The ids of machines that are only tried."""
    return [f"{_ADDED}{number:09d}" for number in range(count)]


def apply_all(
    situation: Situation, members: Sequence[int], changes: Iterable[SituationChange]
) -> Situation:
    """The situation with all these changes, one after the other."""
    for change in changes:
        situation = change.applied(situation, members)
    return situation


def as_pairs(amounts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Amounts as a value that can be compared and hashed."""
    return tuple(sorted(amounts.items()))
