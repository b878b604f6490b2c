"""Why needs are unmet and what would help, worked out when a person asks.

`bigfleet.explanation` decides again on copies of what the last cycle decided on. That takes many
decisions, so it happens away from the event loop, one need at a time for the whole shard, never
while a cycle is deciding, for two seconds at most, and once per need and plan. What there was no
time for is marked as not tried; a caller that hangs up and a shard that stops end the search after
the decision that is being made.

What the cycle does not know is put right before: machines whose Creates fail again and again
(`failing_creates`) serve nothing, and what they are created from counts as out of stock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.decision import BackOff, Engine, Plan
from bigfleet.explanation import Explanation, Situation, TriedRemedy, explain
from bigfleet.explanation.phrases import change, detail, effect, why
from bigfleet.explanation.situation import ComparedPlan
from bigfleet.explanation.supply import SupplyCounts
from bigfleet.model import format_resources
from bigfleet.model.blockers import NOT_FOUND_IN_TIME
from bigfleet.model.columns import Offering
from bigfleet.model.columns.machines import Flag
from bigfleet.observe.process import Clock, Offload
from bigfleet_api.v1alpha1 import provider_pb2
from bigfleet_api.v1alpha1 import shardread_pb2 as pb

I64 = npt.NDArray[np.int64]

MOST_SECONDS: Final = 2.0
"""For one call; what it has no time for is not tried."""
_MOST_WAITING: Final = 16
"""Calls that wait for their turn; further ones get an incomplete explanation at once."""
_LET_CYCLE_END_SECONDS: Final = 0.5


@dataclass(frozen=True)
class Basis:
    """What a cycle decided on, and what it could not know."""

    situation: Situation
    plan: Plan
    vain: I64
    """Machines that needs claim and that are not to be had: their Creates fail."""
    failing: frozenset[Offering]


@dataclass
class _Session:
    """One basis with an engine and symbols of its own, for all needs that are asked about."""

    basis: Basis
    engine: Engine = field(default_factory=Engine)
    found: dict[int, pb.NeedExplanation] = field(default_factory=dict)
    _put_right: tuple[Situation, Plan] | None = None

    def __post_init__(self) -> None:
        self.situation = self.basis.situation.fork()

    def explain(
        self,
        members: list[int],
        row: int,
        go_on: Callable[[], bool],
        before: Callable[[], None],
    ) -> pb.NeedExplanation:
        """The explanation of the row that stands for these rows of the demand."""

        def decide(s: Situation) -> Plan:
            before()
            return self.engine.decide(s.fleet, s.demand, s.policy, s.carry, s.now)

        situation, plan = self.situation, self.basis.plan
        if len(self.basis.vain) or self.basis.failing:
            if self._put_right is None:
                known = without_failing(situation, self.basis)
                self._put_right = known, decide(known)
            situation, plan = self._put_right
            row = ComparedPlan(plan).rows(members)[0]
        return as_proto(explain(situation, plan, row, decide, go_on), situation, members)


class NeedExplanations:
    """Explains unmet needs of the last cycle, one at a time."""

    def __init__(
        self, offload: Offload, clock: Clock, wait_for_cycle: Callable[[float], None]
    ) -> None:
        """``wait_for_cycle`` returns when no cycle is deciding, or so many seconds later."""
        self._offload, self._clock, self._wait = offload, clock, wait_for_cycle
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._session: _Session | None = None
        self._stopped = False

    def deadline(self) -> float:
        """Until when a call that begins now may search, on the steady clock."""
        return self._clock.monotonic() + MOST_SECONDS

    def stop(self) -> None:
        """End every search after the decision that is being made."""
        self._stopped = True

    async def of(self, basis: Basis, row: int, until: float) -> pb.NeedExplanation:
        """The explanation of one row of the plan that is shown."""
        found = self._known(basis, row)
        if found is not None:
            return found
        if self._waiting >= _MOST_WAITING:
            return _incomplete()
        self._waiting += 1
        try:
            async with self._turn:
                return self._known(basis, row) or await self._search(basis, row, until)
        finally:
            self._waiting -= 1

    def _known(self, basis: Basis, row: int) -> pb.NeedExplanation | None:
        if self._session is None or self._session.basis is not basis:
            return None
        return self._session.found.get(row)

    async def _search(self, basis: Basis, row: int, until: float) -> pb.NeedExplanation:
        given_up = False

        def go_on() -> bool:
            return not (given_up or self._stopped) and self._clock.monotonic() < until

        if not go_on():
            return _incomplete()
        if self._session is None or self._session.basis is not basis:
            # Forked on the event loop, where symbols change.
            self._session = _Session(basis)
        session, v = self._session, basis.plan.verdicts
        members = v.members[v.members_at[row] : v.members_at[row + 1]].tolist()

        def before() -> None:
            self._wait(_LET_CYCLE_END_SECONDS)

        try:
            found = await self._offload(lambda: session.explain(members, row, go_on, before))
        except asyncio.CancelledError:
            given_up = True
            raise
        if not found.incomplete and go_on():
            session.found[row] = found
        return found


def without_failing(situation: Situation, basis: Basis) -> Situation:
    """The situation in which machines and offerings whose Creates fail serve nothing."""
    flags = situation.fleet.flags.copy()
    flags[basis.vain] |= int(Flag.BACKING_OFF)
    out = {offering: BackOff(situation.now + 1, 1) for offering in basis.failing}
    carry = replace(situation.carry, stock_outs={**situation.carry.stock_outs, **out})
    return replace(situation, fleet=replace(situation.fleet, flags=flags), carry=carry)


def as_proto(found: Explanation, situation: Situation, members: list[int]) -> pb.NeedExplanation:
    """An explanation as it is sent."""
    need = situation.demand.need(members[0])
    total = SupplyCounts(situation).total(need)
    return pb.NeedExplanation(
        blockers=[
            pb.Blocker(
                kind=pb.BlockerKind.ValueType(int(blocker.kind)),
                detail=detail(blocker, need, total),
            )
            for blocker in found.blockers
        ],
        why=why(found, need, total),
        incomplete=not found.found_in_time,
        holders=_counts(found.holders),
        remedies=[_remedy(tried, situation) for tried in found.remedies],
        not_tried=found.not_tried,
    )


def _remedy(tried: TriedRemedy, situation: Situation) -> pb.Remedy:
    found = tried.effect
    return pb.Remedy(
        change=change(tried.remedy, situation),
        met=found.met,
        reached=provider_pb2.Resources(resources=format_resources(found.got)),
        asked=provider_pb2.Resources(resources=format_resources(found.asked)),
        become_unmet=_counts(found.become_unmet),
        get_less=_counts(found.get_less),
        machines_preempted=found.preempted,
        effect=effect(tried),
    )


def _counts(counted: Mapping[int, int]) -> list[pb.PriorityCount]:
    return [pb.PriorityCount(priority=p, count=n) for p, n in sorted(counted.items())]


def _incomplete() -> pb.NeedExplanation:
    return pb.NeedExplanation(why=NOT_FOUND_IN_TIME, incomplete=True)
