"""The queue and the workers: every order that is accepted ends in exactly one outcome.

At most one action per machine: the book marks it busy from the moment its order is accepted until
the outcome is counted. An order is dropped when its machine is busy, has moved on since it was
decided, or is in back-off; the next cycle decides again. A gang is accepted whole or not at all.
`fair_queue` says whose turn it is, `actions` what an action does, `settlement` what its end means.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bigfleet.decision import ActionKind
from bigfleet.model import Machine, MachineState
from bigfleet.shard.act.actions import ActionContext, ActionSteps
from bigfleet.shard.act.admission import Admission
from bigfleet.shard.act.attempts import Attempt
from bigfleet.shard.act.audit_log import AuditLog
from bigfleet.shard.act.backoff import BackoffTable
from bigfleet.shard.act.book_listener import BookListener, JournalKeeper
from bigfleet.shard.act.decisions import Decision, Decisions
from bigfleet.shard.act.fair_queue import FairQueue
from bigfleet.shard.act.held_back import HeldBackOrders, decision_of
from bigfleet.shard.act.outcomes import ActionFailedError, ExecutionOutcome, counted_as
from bigfleet.shard.act.pending_drains import PendingDrain, PendingDrains
from bigfleet.shard.act.rails import units
from bigfleet.shard.act.settlement import Settlement
from bigfleet.shard.machines.orders import Order
from bigfleet.shard.state.journal import Journal, JournalEntry

_LONGEST_GRACE_SECONDS: Final = 600.0
_NS: Final = 1e9
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """What the owner of a shard may set about executing."""

    concurrency: int = 64
    queue: int = 16_384
    action_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class EnqueueResult:
    """What became of a cycle's orders."""

    accepted: list[Order]
    dropped: int = 0
    """Refused by a full queue."""
    deduped: int = 0
    """Their machine is busy, has moved on, or is left alone for a while."""


class Executor:
    """Takes orders and carries them out. `may_act` is asked before every action."""

    def __init__(
        self,
        means: ActionContext,
        journal: Journal,
        *,
        epoch: int,
        may_act: Callable[[], bool] = lambda: True,
        settings: PoolSettings | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        self._means = means
        self._book = means.book
        self._clock = means.clock
        self._metrics = means.metrics
        self._epoch = epoch
        self._may_act = may_act
        self._settings = settings or PoolSettings()
        self._audit = audit
        self._queue = FairQueue(self._settings.concurrency)
        self._running = 0
        self._open = True
        self._stopped = asyncio.Event()
        self._rest = asyncio.Event()
        self._rest.set()
        self._restoring: dict[str, JournalEntry] = {}
        self._journal = JournalKeeper(journal)
        self.decisions = Decisions()
        self.withheld = HeldBackOrders(self._tell, means.clock.now)
        self.failures = BackoffTable(means.clock, means.chance)
        self.drains = PendingDrains(means.clock, self._drain_is_due)
        watch = BookListener(
            means.clock, self.drains, self.failures, self._journal, means.metrics, means.wake
        )
        self._actions = ActionSteps(means, self.drains, self.failures, self._journal, watch)
        self._admission = Admission(means.book, self.failures, self._actions.offers_delete)
        fence = self._admission.fenced.add
        self._endings = Settlement(means, self._actions, self.drains, self.failures, fence, epoch)
        means.book.on_change.append(watch.on_change)
        means.book.on_change.append(self._seen)

    # -- reading ---------------------------------------------------------------------------------

    @property
    def depth(self) -> int:
        """Actions that wait."""
        return len(self._queue)

    @property
    def inflight(self) -> int:
        """Actions that run."""
        return self._running

    @property
    def fenced(self) -> frozenset[str]:
        """Providers at which this shard changes nothing any more."""
        return frozenset(self._admission.fenced)

    @property
    def not_ready(self) -> str:
        """Why this shard cannot be counted on; empty when it can."""
        names = ", ".join(sorted(self._admission.fenced))
        return names and (
            f"provider {names} has seen a newer process of this shard than epoch {self._epoch}: "
            "stop one of the two, then restart this one"
        )

    # -- taking orders ---------------------------------------------------------------------------

    def enqueue(self, orders: Sequence[Order], cycle: int) -> EnqueueResult:
        """Take orders. Each accepted one holds its machine; the caller writes into the book what
        has begun before the event loop turns.
        """
        fitting = self._admission.fitting(orders)
        accepted: list[Order] = []
        dropped = deduped = 0
        for unit in units(orders):
            if not all((order.machine, order.kind) in fitting for order in unit):
                deduped += len(unit)
            elif not self._open or self.depth + len(unit) > self._settings.queue:
                dropped += len(unit)
            elif not self._hold(unit):
                deduped += len(unit)
            else:
                accepted.extend(unit)
                for order in unit:
                    pending = None
                    if order.kind is ActionKind.KEEP:
                        pending = self.drains.remove(order.machine)
                    self._queue.put(Attempt(order, cycle, pending))
        self._count(accepted, dropped, deduped)
        self._means.traces.decided(accepted, cycle)
        return EnqueueResult(accepted, dropped, deduped)

    def _hold(self, unit: Sequence[Order]) -> bool:
        machines = {order.machine for order in unit}
        if len(machines) < len(unit) or any(map(self._book.busy, machines)):
            return False
        for machine in machines:
            self._book.mark_busy(machine)
        return True

    def _count(self, accepted: Sequence[Order], dropped: int, deduped: int) -> None:
        for order in accepted:
            self._metrics.action_passed(counted_as(order.kind))
        if dropped:
            self._metrics.actions_dropped(dropped)
        if deduped:
            self._metrics.actions_deduped(deduped)
        self._metrics.action_queue(self.depth, self.inflight)

    # -- graces ----------------------------------------------------------------------------------

    def reclaim_acknowledged(
        self, cluster: str, instruction_id: str, second: bool, left: tuple[str, ...] = ()
    ) -> None:
        """An operator answered an instruction."""
        self.drains.acknowledged(cluster, instruction_id, second, left)

    def restore(self, entries: Mapping[str, JournalEntry]) -> None:
        """What the journal held at the start; a grace goes on when its machine is seen leaving."""
        self._journal.restored(entries)
        self._restoring = {machine: entry for machine, entry in entries.items() if entry.leaving}
        for machine_id in list(self._restoring):
            self._seen(None, self._book.get(machine_id))

    def restored(self) -> None:
        """Every provider has been listed: what no List held is gone for good."""
        self._restoring.clear()
        for machine_id in self._journal.machines():
            self._journal.changed(machine_id, self._book.get(machine_id))

    def _seen(self, before: Machine | None, after: Machine | None) -> None:
        if after is None or after.id not in self._restoring:
            return
        entry = self._restoring.pop(after.id)
        if after.state is not MachineState.CONFIGURED or after.leaving is None:
            return
        left = (entry.deadline_ns - self._clock.now()) / _NS
        pending = PendingDrain(
            order=_order_before_restart(after, entry),
            instruction_id=entry.instruction_id,
            node=self._means.node_name(after.id) or after.id,
            deadline=self._clock.monotonic() + min(max(left, 0.0), _LONGEST_GRACE_SECONDS),
        )
        self.drains.add(pending)

    def _drain_is_due(self, pending: PendingDrain) -> bool:
        machine = self._book.get(pending.machine)
        if machine is None or machine.leaving is None:
            self.drains.remove(pending.machine)
            return True
        if pending.order.provider in self._admission.fenced:
            return True
        if machine.state is not MachineState.CONFIGURED:
            # A Drain that was given up on arrived after all: its end is seen in a List.
            return False
        can = self._open and self._may_act() and self.depth < self._settings.queue
        if not can or not self._book.mark_busy(pending.machine):
            return False
        self._queue.put(Attempt(pending.order, pending.cycle, pending, later=True, drain=True))
        return True

    # -- running ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until `stop` is through, or cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._work()) for _ in range(self._settings.concurrency)]
                tasks.append(group.create_task(self.drains.run()))
                tasks.append(group.create_task(self._journal.run()))
                if self._audit is not None:
                    tasks.append(group.create_task(self._audit.run()))
                await self._stopped.wait()
                for task in tasks:
                    task.cancel()
        finally:
            self._open = False
            self._give_up_waiting()

    async def stop(self, seconds: float) -> None:
        """Take nothing more, give up what waits, let what runs end within so many seconds."""
        self._open = False
        self._give_up_waiting()
        try:
            async with asyncio.timeout(seconds):
                await self._rest.wait()
        except TimeoutError:
            _log.warning("actions are cut off by the stop", extra={"count": self._running})
        if self._audit is not None:
            await self._audit.flush()
        self._stopped.set()

    async def _work(self) -> None:
        while True:
            await self._run(await self._queue.next())

    async def _run(self, attempt: Attempt) -> None:
        self._running += 1
        self._rest.clear()
        failed: BaseException | None = asyncio.CancelledError("the shard stops")
        again = False
        try:
            more = await self._carry_out(attempt)
            while more and not self._open:
                more = await self._carry_out(attempt)
            again, failed = more, None
        except Exception as error:  # noqa: BLE001 - a worker outlives every action
            failed = error
            await self._endings.ask(attempt, failed)
        finally:
            self._running -= 1
            self._queue.ended(attempt)
            if again:
                self._queue.put(attempt)
            else:
                self._end(attempt, failed)
            if not self._running:
                self._rest.set()

    async def _carry_out(self, attempt: Attempt) -> bool:
        """Its next step; whether there is another one."""
        now = self._clock.monotonic()
        if attempt.begun is None:
            attempt.begun = now
        attempt.deadline = now + self._settings.action_seconds - attempt.worked
        if not self._may_act():
            raise ActionFailedError(ExecutionOutcome.CANCELED, "actuation is paused")
        if attempt.order.provider in self._admission.fenced:
            raise ActionFailedError(ExecutionOutcome.FENCED, "its provider has fenced this shard")
        if attempt.hopeless:
            # There may be thousands of them, and each ends without waiting for anybody.
            await asyncio.sleep(0)
            raise ActionFailedError(ExecutionOutcome.BLOB_ERROR, attempt.hopeless)
        with self._means.traces.doing(attempt.order):
            async with asyncio.timeout_at(attempt.deadline):
                more = await self._actions.perform(attempt)
        attempt.worked += self._clock.monotonic() - now
        return more

    def _give_up_waiting(self) -> None:
        for attempt in self._queue.drop_all():
            self._end(attempt, asyncio.CancelledError("the shard stops"))

    def _end(self, attempt: Attempt, failed: BaseException | None) -> None:
        order = attempt.order
        outcome = self._endings.end(attempt, failed)
        if attempt.is_mute:
            self._give_up_on(order.cluster)
        freed = self._book.free(order.machine)
        if freed is not None and (freed.freed or freed.delivered):
            self._means.wake()
        self._metrics.action_ended(counted_as(order.kind), outcome)
        self._metrics.action_queue(self.depth, self.inflight)
        why = str(failed) if failed is not None else ""
        self._means.traces.ended(order, outcome, why)
        kind = "Drain" if attempt.later else ""
        self._tell(decision_of(order, attempt.cycle, self._clock.now(), outcome, why, kind))

    def _give_up_on(self, cluster: str) -> None:
        """Its bootstraps are derived again when it is out of its back-off."""
        for attempt in self._queue.asking(cluster):
            attempt.hopeless = f"cluster {cluster!r} has just failed to deliver bootstrap data"

    def _tell(self, decision: Decision) -> None:
        self.decisions.append(decision)
        if self._audit is not None:
            self._audit.record(decision)


def _order_before_restart(machine: Machine, entry: JournalEntry) -> Order:
    stamp = entry.for_stamp
    return Order(
        kind=ActionKind.RECLAIM if stamp is None else ActionKind.PREEMPT,
        machine=machine.id,
        provider=machine.provider,
        cluster=machine.cluster,
        stamp=stamp,
        reason="told to leave before a restart",
        fingerprint="" if stamp is None else stamp.fingerprint,
        dollars_per_hour=machine.price_per_hour,
        capacity_type=int(machine.capacity_type),
    )
