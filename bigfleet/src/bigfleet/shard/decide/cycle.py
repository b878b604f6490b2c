"""One decision cycle: merge what has come in, decide away from the event loop, hand over orders.

    ingest -> reconcile -> snapread -> normalise, phase1..3 (off the loop) -> emit -> execute

Waiting for providers and decoding roll-ups happen elsewhere, as they arrive. What was decided is
compared with what has happened meanwhile: an order for a machine that moved on is dropped, and the
next cycle derives it again. A decision that takes too long is discarded as a whole (`watchdog`).
Phases are timed one by one.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from bigfleet.decision import Carry, ClockSet, DecisionCancelledError, Engine, Plan, Policy
from bigfleet.decision.work_budget import weights_of
from bigfleet.model.columns import Demand, MachineColumns, Symbols
from bigfleet.observe.cycles import CycleRecord
from bigfleet.observe.process import Clock, Offload
from bigfleet.shard.act.executor import EnqueueResult
from bigfleet.shard.act.rails import AdmittedOrders, portions
from bigfleet.shard.decide.orders import beyond_budget, orders_of, settle_credits
from bigfleet.shard.decide.watchdog import DecisionWatchdog
from bigfleet.shard.machines.book import Book
from bigfleet.shard.machines.orders import Order
from bigfleet.shard.state.restamps import lines_of

PHASES: Final = (
    "ingest", "reconcile", "snapread", "normalise", "phase1", "phase2", "phase3", "emit", "execute",
)  # fmt: skip
_AT_ONCE: Final = 64
"""Orders handed over between two turns of the event loop: about three milliseconds of work."""
_SHOWN: Final = 20
"""Clusters that a log line names."""
_NS: Final = 1e9
_SET: Final = 1_000_000_000
"""Nanoseconds by which two clocks may differ from one cycle to the next before one was set."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CycleOutcome:
    """A finished decision, for those who show it."""

    number: int
    trigger: str
    now: int
    plan: Plan
    policy: Policy
    orders: Sequence[Order]
    """What is really done; what rails held back is not in it."""
    machine_changes: int
    read_unix_ns: int
    """When the demand it decided on was read, in Unix nanoseconds."""
    carry: Carry
    """What was remembered when it was decided."""


class Inputs(Protocol):
    """What a cycle reads besides machines."""

    async def demand(self, carry: Carry) -> Demand:
        """All demand, with what is known of the clusters."""

    def policy(self) -> Policy:
        """The settings of this cycle."""

    async def carried_over(self, carry: Carry) -> Carry:
        """The carry with what failed since the last cycle, in the numbers that hold now."""

    async def merge(self) -> int:
        """Merge provider answers that have arrived; how many machines changed."""


class Outputs(Protocol):
    """Where a cycle's decisions go."""

    def permit(self, orders: Sequence[Order], policy: Policy, capped: int) -> AdmittedOrders:
        """What rails let through and what not; so many more reclaims the cap held back."""

    def show(self, outcome: CycleOutcome) -> int:
        """Ledger, views, hints, verdicts, gauges; how many rows are shown as unmet."""

    def finished(self, record: CycleRecord) -> None:
        """The cycle is over."""


class OrderQueue(Protocol):
    """Who executes orders."""

    def enqueue(self, orders: Sequence[Order], cycle: int) -> EnqueueResult:
        """Queue the orders of a cycle; the accepted ones hold their machines."""


@dataclass
class DecisionCycle:
    """Runs cycles, one after the other."""

    book: Book
    inputs: Inputs
    outputs: Outputs
    clock: Clock
    offload: Offload
    timer: Callable[[], float]
    cpu: Callable[[], float]
    queue: OrderQueue
    hold_back: Callable[[Sequence[tuple[Order, str]], int], Awaitable[None]]
    """Makes known what a cycle decided and rails do not let happen, each with the reason."""
    restamped: Callable[[bytes], None]
    """Writes down which machines count for another need from now on."""
    watchdog: DecisionWatchdog
    engine: Engine = field(default_factory=Engine)
    number: int = 0
    carry: Carry = field(default_factory=Carry)
    _symbols: Symbols | None = None
    """Those the engine has decided in: what it keeps between cycles are numbers of theirs."""
    read_unix_ns: int = 0
    """When the demand of the last cycle was read, in Unix nanoseconds."""
    _stopping: bool = False
    _last: tuple[int, float] | None = None
    """What time it was in the last cycle, by the wall clock and by the monotonic one."""

    def stop(self) -> None:
        """Decide nothing more; a decision under way is given up."""
        self._stopping = True
        self.engine.cancel.set()

    async def once(self, trigger: str) -> CycleRecord | None:
        """One cycle, from merging to enqueueing; None where its decision was discarded."""
        begin, cpu_begin, started = self.timer(), self.cpu(), self.clock.now()
        self.number += 1
        self.read_unix_ns = started
        marks = [begin]
        carry = await self.inputs.carried_over(self.carry)
        demand = await self.inputs.demand(carry)
        marks.append(self.timer())
        changes = await self.inputs.merge()
        marks.append(self.timer())
        now = self.clock.now()
        carry = self._set_right(carry, now)
        fleet, policy = self.book.snapshot(), self.inputs.policy()
        if self.watchdog:
            frozen = self.watchdog.frozen(weights_of(fleet, demand))
            policy = replace(policy, frozen=frozen)
        marks.append(self.timer())
        # Without a plan the next cycle starts from here.
        self.carry = carry
        try:
            plan, orders, capped, restamps = await self._decide(fleet, demand, policy, carry, now)
        except DecisionCancelledError:
            if not self._stopping:
                self.watchdog.discard(weights_of(fleet, demand))
            return None
        self._note_frozen(carry, plan)
        self.carry = plan.carry
        marks.append(self.timer())
        admitted = self.outputs.permit(orders, policy, capped)
        settle_credits(plan, self.book)
        marks.append(self.timer())
        accepted = await self._hand_over(admitted.orders)
        self.restamped(restamps)
        marks.append(self.timer())
        await self.hold_back(admitted.withheld, self.number)
        unmet = self.outputs.show(
            CycleOutcome(self.number, trigger, now, plan, policy, accepted, changes, started, carry)
        )
        marks.append(self.timer())
        record = self._record(trigger, started, marks, plan, accepted, changes, unmet, cpu_begin)
        self.outputs.finished(record)
        return record

    def _note_frozen(self, carry: Carry, plan: Plan) -> None:
        if plan.frozen != carry.frozen:
            _log.warning(
                "clusters are left out of decisions, because their demand is too much work"
                if plan.frozen
                else "no cluster is left out of decisions any more",
                extra={"clusters": sorted(plan.frozen)[:_SHOWN], "count": len(plan.frozen)},
            )

    def _set_right(self, carry: Carry, now: int) -> Carry:
        """Shift what runs for a time where the wall clock was set, so that its duration stays."""
        steady = self.clock.monotonic()
        last, last_steady = self._last or (now, steady)
        self._last = (now, steady)
        since = now - int((steady - last_steady) * _NS)
        by = since - last
        if abs(by) < _SET:
            return carry
        _log.warning(
            "wall clock jumped %s by %.1f s; running timers were shifted to keep their duration",
            "ahead" if by > 0 else "back",
            abs(by) / _NS,
            extra={"seconds": round(abs(by) / _NS, 3)},
        )
        clock = ClockSet(by, since, now)
        self.book.moved(clock)
        return carry.moved(clock)

    async def _decide(
        self, fleet: MachineColumns, demand: Demand, policy: Policy, carry: Carry, now: int
    ) -> tuple[Plan, list[Order], int, bytes]:
        if demand.symbols is not self._symbols:
            if self._symbols is not None:
                self.engine = Engine(self.engine.clock, self.engine.cancel)
            self._symbols = demand.symbols

        def decide() -> tuple[Plan, list[Order], int, bytes]:
            plan = self.engine.decide(fleet, demand, policy, carry, now)
            beyond = beyond_budget(plan, policy.reclaim_budget)
            return plan, orders_of(plan, beyond), int(beyond.sum()), lines_of(plan)

        cancel = self.engine.cancel
        if not self._stopping:
            cancel.clear()
        late = asyncio.get_running_loop().call_later(self.watchdog.seconds, cancel.set)
        self.book.deciding(True)
        try:
            return await self.offload(decide)
        finally:
            late.cancel()
            self.book.deciding(False)

    async def _hand_over(self, orders: Sequence[Order]) -> list[Order]:
        """Queue orders in portions; those that were taken, told to everybody before they run."""
        accepted: list[Order] = []
        for portion in portions(orders, _AT_ONCE):
            taken = self.queue.enqueue(portion, self.number).accepted
            self.book.begin(taken)
            accepted.extend(taken)
            await asyncio.sleep(0)
        return accepted

    def _record(
        self,
        trigger: str,
        started: int,
        marks: Sequence[float],
        plan: Plan,
        accepted: Sequence[Order],
        changes: int,
        unmet: int,
        cpu_begin: float,
    ) -> CycleRecord:
        ingest, reconcile, snapread, decided, permit, execute, show = (
            end - start for start, end in itertools.pairwise(marks)
        )
        inside = sum(plan.seconds.values())
        phases = {
            "ingest": ingest,
            "reconcile": reconcile,
            "snapread": snapread,
            **plan.seconds,
            # Making orders of the plan, and what handing over to a thread costs, belong to it.
            "emit": permit + show + max(0.0, decided - inside),
            "execute": execute,
        }
        return CycleRecord(
            cycle=self.number,
            start_unix_nanos=started,
            trigger=trigger,
            wall_ns=int((marks[-1] - marks[0]) * _NS),
            cpu_ns=int((self.cpu() - cpu_begin) * _NS),
            phases={name: int(phases.get(name, 0.0) * _NS) for name in PHASES},
            needs=len(plan.demand),
            machines=len(self.book),
            changes=changes,
            actions=dict(Counter(order.kind.title for order in accepted)),
            shortfalls=unmet,
        )
