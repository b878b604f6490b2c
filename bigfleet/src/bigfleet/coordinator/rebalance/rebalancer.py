"""The loop of the leader: plan rounds, move what is under way along, write and tell.

A round is every half minute, and at once when a shortfall escalates or a step of a move was
acknowledged. Planning is done away from the event loop, on what was known when it began. Every step
is in the store before anybody is told of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Final, Protocol

from bigfleet.coordinator.errors import CoordinatorError
from bigfleet.coordinator.leadership.leader_state import LeaderState
from bigfleet.coordinator.rebalance import rules
from bigfleet.coordinator.rebalance.moves.advance import advance
from bigfleet.coordinator.rebalance.moves.move_tracker import MoveTracker
from bigfleet.coordinator.rebalance.planning.planner import RebalancePlan, none_eligible, plan
from bigfleet.coordinator.rebalance.planning.report_reader import PlanningInput, ReportReader
from bigfleet.coordinator.reports.instructions import EndedInstruction
from bigfleet.coordinator.reports.report_cache import ReceivedReport
from bigfleet.coordinator.state import (
    ForgetMoves,
    Move,
    MovePhase,
    PlanMoves,
    RefusalError,
)
from bigfleet.observe.process import Offload

_NS: Final = 1_000_000_000
_MOST_STEPS: Final = 8
"""Of one move at a time; none has so many."""
_SHARE: Final = 4
"""Rounds in a hurry take at most one part in five of the time."""
_MOST_OVER: Final = 5_000
"""Rows of moves that are over."""
_log = logging.getLogger(__name__)


class RebalanceCounts(Protocol):
    """What is counted."""

    def move(self, tier: str, outcome: str) -> None:
        """planned, done or abandoned."""

    def machines_moved(self, tier: str, count: int) -> None:
        """Their owner really changed."""

    def move_suppressed(self, reason: str) -> None:
        """A shortfall was not acted on."""

    def sweep(self, seconds: float) -> None:
        """A round took so long."""

    def adopted(self, seconds: float) -> None:
        """From the escalated shortfall until its recipient had the machines."""


class FleetRebalancer:
    """The loop behind `leadership.ports.Rebalancer`; one for the life of a process."""

    def __init__(self, offload: Offload, counts: RebalanceCounts) -> None:
        self._offload, self._counts = offload, counts
        self._reader = ReportReader()
        self._course: MoveTracker | None = None
        self._escalated: dict[str, dict[str, int]] = {}
        """Per shard and fingerprint, since when a shortfall is old enough."""
        self._woken = asyncio.Event()
        self._is_urgent = False
        self._last_took = 0.0

    async def run(self, leader_state: LeaderState) -> None:
        """Take up the stored moves and plan new ones, until cancelled."""
        clock = leader_state.clock
        last_round = -rules.ROUND_SECONDS
        while True:
            self._woken.clear()
            await self._guarded(self.look(leader_state))
            # Even if reports always wake it, most of the time is left for others.
            gap = max(rules.LEAST_GAP_SECONDS, _SHARE * self._last_took)
            wait = last_round + (gap if self._is_urgent else rules.ROUND_SECONDS)
            wait -= clock.monotonic()
            if wait <= 0:
                self._is_urgent = False
                last_round = clock.monotonic()
                await self._guarded(self.begin_round(leader_state))
                continue
            if any(not move.phase.is_over for move in leader_state.state.moves.values()):
                wait = min(wait, rules.LOOK_SECONDS)
            try:
                async with asyncio.timeout(wait):
                    await self._woken.wait()
            except TimeoutError:
                pass

    def reported(self, leader_state: LeaderState, report: ReceivedReport) -> None:
        """A shard's report was taken; its acknowledgements come after."""
        if self._of(leader_state).reported(report):
            self._woken.set()
        shard, before = report.shard_id, self._escalated.get(report.shard_id, {})
        after = {
            one.profile_fingerprint: before.get(one.profile_fingerprint, report.heartbeat_at)
            for one in report.shortfalls
            if one.age_cycles > rules.ESCALATION_AGE and not one.topology_constrained
        }
        self._escalated[shard] = after
        if after.keys() - before.keys():
            self._is_urgent = True
            self._woken.set()

    def acknowledged(self, leader_state: LeaderState, ended: EndedInstruction) -> None:
        """A shard said how an instruction went."""
        if self._of(leader_state).acknowledged(ended):
            self._is_urgent = True
            self._woken.set()

    def moves(self, leader_state: LeaderState) -> Sequence[Move]:
        """All moves that are known, in the order they were planned."""
        return sorted(
            leader_state.state.moves.values(), key=lambda move: (move.created_at, move.id)
        )

    def _of(self, leader_state: LeaderState) -> MoveTracker:
        if self._course is None or self._course.leader_state is not leader_state:
            self._course = MoveTracker(leader_state)
            self._escalated = {}
        return self._course

    # -- moves under way -------------------------------------------------------------------------

    async def look(self, leader_state: LeaderState) -> None:
        """Move along whatever can be, and instruct the shards that have something to do."""
        tracker = self._of(leader_state)
        tracker.watch_registry()
        for move in tracker.looked_at():
            try:
                await self._follow(tracker, move)
            except RefusalError as error:
                # The tables say something else by now; the others need not wait for it.
                _log.warning("a step was refused: %s", error, extra={"move": move.id})

    async def _follow(self, tracker: MoveTracker, move: Move) -> None:
        words = tracker.take_words(move.id)
        for _ in range(_MOST_STEPS):
            sides = tracker.side(move.donor, move), tracker.side(move.recipient, move)
            verdict = advance(move, *sides, words, tracker.context(move))
            if verdict.step is None:
                tracker.tell(move, verdict.orders)
                return
            # Whatever it was told does not hold any more.
            tracker.tell(move, ())
            try:
                changes = await tracker.leader_state.apply(verdict.step)
            except (CoordinatorError, RefusalError):
                tracker.put_back(move.id, words)
                raise
            words = []
            before, move = move, tracker.leader_state.state.moves[move.id]
            if changes:
                self._count(tracker, before, move)

    def _count(self, tracker: MoveTracker, before: Move, after: Move) -> None:
        if after.phase is before.phase:
            return
        tier, now = after.tier.value, tracker.leader_state.clock.now()
        match after.phase:
            case MovePhase.DONOR_RELEASED:
                tracker.released.add(after.id)
            case MovePhase.RECIPIENT_ADOPTED:
                self._counts.machines_moved(tier, len(after.machine_ids))
                self._counts.adopted(max(0.0, (now - after.escalated_at) / _NS))
            case MovePhase.DONE:
                self._counts.move(tier, "done")
            case MovePhase.ABANDONED:
                self._counts.move(tier, "abandoned")
            case _:
                pass
        _log.info(
            "move advanced",
            extra={
                "move": after.id,
                "tier": tier,
                "donor": after.donor,
                "recipient": after.recipient,
                "phase": after.phase.value,
                "machines": len(after.machine_ids),
                "reason": after.reason,
            },
        )

    async def _sweep_up(self, tracker: MoveTracker) -> None:
        """Forget moves that are over, that no shard holds and no shard will report again."""
        now, state = tracker.leader_state.clock.now(), tracker.leader_state.state
        over = sorted(
            (move for move in state.moves.values() if move.phase.is_over),
            key=lambda move: move.updated_at,
        )
        spare = len(over) - _MOST_OVER
        gone = []
        for number, move in enumerate(over):
            kept = rules.COOLDOWN_SECONDS if number < spare else rules.KEPT_SECONDS
            if move.phase is MovePhase.ABANDONED and move.recipient not in state.shards:
                # Should it come back with the machines, the leader has to know whose they are.
                kept = max(kept, rules.KEPT_FOR_THE_GONE_SECONDS if move.machine_ids else 0.0)
            if now - move.updated_at > kept * _NS and not tracker.is_held(move.id):
                gone.append(move.id)
        if gone:
            await tracker.leader_state.apply(ForgetMoves(tuple(gone)))
            tracker.forget(gone)

    # -- rounds ----------------------------------------------------------------------------------

    async def begin_round(self, leader_state: LeaderState) -> None:
        """Plan moves and write them down; the next look begins them."""
        tracker = self._of(leader_state)
        began = leader_state.clock.monotonic()
        planned = await self._plan(tracker, began)
        for one in planned.suppressed:
            self._counts.move_suppressed(one.reason)
        if planned.moves:
            await leader_state.apply(PlanMoves(planned.moves))
            for move in planned.moves:
                self._counts.move(move.tier.value, "planned")
            _log.info("moves planned", extra={"moves": len(planned.moves)})
        self._last_took = leader_state.clock.monotonic() - began
        self._counts.sweep(self._last_took)
        await self._sweep_up(tracker)

    async def _plan(self, tracker: MoveTracker, seconds: float) -> RebalancePlan:
        leader_state = tracker.leader_state
        state = leader_state.state
        fresh = [
            one for one in leader_state.reports if seconds - one.seconds <= rules.STALE_SECONDS
        ]
        if not any(self._escalated.get(one.shard_id) for one in fresh):
            # Most rounds of most fleets: nothing of what shards could give is even read.
            return none_eligible(fresh)
        known = PlanningInput(
            moves=tuple(state.moves.values()),
            quotas=dict(state.quotas),
            providers=dict(state.providers),
            now=leader_state.clock.now(),
            escalated={
                (shard, name): since
                for shard, ages in self._escalated.items()
                for name, since in ages.items()
            },
            is_whole=len(fresh) == len(state.shards),
        )

        def work() -> RebalancePlan:
            views = self._reader.views(fresh)
            return plan(self._reader.catalogue, views, known, lambda: f"m-{tracker.mint()}")

        return await self._offload(work)

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        """The loop outlives whatever goes wrong in one turn; the next turn tries again."""
        try:
            await work
        except (CoordinatorError, RefusalError) as error:
            _log.warning("rebalancing round failed, retrying: %s", error)
        except Exception:  # noqa: BLE001 - a leader that moves nothing is better than none
            _log.exception("rebalancing round failed, retrying")
