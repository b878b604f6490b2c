"""Where a cycle's decisions go: rails and the queue, and everybody who shows what was decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.decision import ActionKind, Policy, Reason
from bigfleet.explanation import Situation
from bigfleet.observe.cycles import CycleRecord, CycleRing
from bigfleet.observe.process import Clock
from bigfleet.observe.shard import ShardMetrics
from bigfleet.observe.shard.ages import TransitionAges
from bigfleet.shard.act.executor import Executor
from bigfleet.shard.act.rails import AdmittedOrders, Rails
from bigfleet.shard.decide.cycle import CycleOutcome
from bigfleet.shard.demand.needs_table import NeedsTable
from bigfleet.shard.explain.attribution import attribute_phases, attribute_plan
from bigfleet.shard.explain.failing_creates import FailingCreates
from bigfleet.shard.explain.hints import Hints
from bigfleet.shard.explain.ledger import Ledger
from bigfleet.shard.explain.need_explanations import Basis
from bigfleet.shard.explain.provisioning_latency import ProvisioningLatency
from bigfleet.shard.explain.reclaim_audit import UnforcedReclaims
from bigfleet.shard.explain.verdicts import VerdictUpdates
from bigfleet.shard.explain.views import NeedViews
from bigfleet.shard.machines.book import Book
from bigfleet.shard.machines.orders import Order
from bigfleet.shard.operators.sessions import Sessions
from bigfleet.shard.ports import steady
from bigfleet.shard.providers.lister import Lister

I64 = npt.NDArray[np.int64]
_HELD: Final = {Reason.SPEND_LIMIT: "spend_limit", Reason.QUOTA: "quota"}
_NS: Final = 1e9


@dataclass
class CycleOutputs:
    """Hands over what was decided, and shows it."""

    book: Book
    needs: NeedsTable
    sessions: Sessions
    executor: Executor
    rails: Rails
    forced: UnforcedReclaims
    clock: Clock
    lister: Lister
    metrics: ShardMetrics
    attribution: bool
    """Whether every cycle is written to the log phase by phase."""
    escalate: Callable[[], None]
    """A shortfall has become old enough for the coordinator."""
    again: Callable[[], None]
    """More is to be done than one cycle may: the next should follow at once."""
    latency: ProvisioningLatency
    age: float = 0.0
    """Seconds the process is old already."""
    ledger: Ledger = field(default_factory=Ledger)
    hints: Hints = field(default_factory=Hints)
    verdicts: VerdictUpdates = field(default_factory=VerdictUpdates)
    unserved: FailingCreates = field(default_factory=FailingCreates)
    cycles: CycleRing = field(default_factory=CycleRing)
    views: NeedViews | None = None
    """Of the last finished cycle; None before the first."""
    changed_rows: dict[str, int] = field(default_factory=dict)
    """Rows that came, changed and went since the last cycle, by the catalogue's names."""
    _started: float = 0.0

    def __post_init__(self) -> None:
        self._started = self.clock.monotonic() - self.age
        self._steady = steady(self.clock)
        self.ages = TransitionAges(self._steady)
        self.book.on_change.append(self.ages)

    def permit(self, orders: Sequence[Order], policy: Policy, capped: int) -> AdmittedOrders:
        """What rails let through and what not; so many more reclaims the cap held back."""
        admitted = self.rails.admit(orders, policy.reclaim_budget or {}, capped)
        if admitted.deferred and self.rails.may_act():
            self.again()
        return admitted

    def show(self, outcome: CycleOutcome) -> int:
        """Ledger, views, hints, verdicts, gauges; how many rows are shown as unmet."""
        plan, policy, now = outcome.plan, outcome.policy, outcome.now
        shown = self.unserved.shown(plan, self.executor.failures.trouble(), self.book.row)
        if self.ledger.update(shown.plan, self.clock.monotonic()):
            self.escalate()
        if len(self.latency):
            self.latency.decided(outcome.orders, self.ledger.unmet(), outcome.read_unix_ns)
        decided_on = Situation(plan.fleet, plan.demand, policy, outcome.carry, now)
        basis = Basis(decided_on, plan, shown.vain, shown.failing)
        self.views = NeedViews(outcome.number, now, shown.plan, policy, self.ledger.ages, basis)
        connected = self.sessions.clusters()
        for hint in self.hints.updates(plan.fleet, plan.demand, connected, self._steady()):
            self.sessions.send(hint.cluster, hint.message, hint.key)
        listening = [c for c in connected if self.sessions.knows_additions(c)]
        for news in self.verdicts.changes(shown, listening):
            self.sessions.send(news.cluster, news.message)
        phantoms = {
            "absent": sum(status.held for status in self.lister.status()),
            "state_conflict": self.lister.contradicted(),
        }
        self.metrics.decided(plan, policy, now, self.ledger.counts(), self.ages.oldest(), phantoms)
        self.metrics.occ(plan.counters, int((plan.claimed >= 0).sum()))
        unforced = self.forced.unforced(
            plan, policy, now, self._lost(outcome), outcome.read_unix_ns
        )
        self.metrics.reclaims_unforced(unforced)
        self.metrics.clusters_frozen(len(plan.frozen))
        self.metrics.stockouts_cooling(len(plan.carry.cooling(now)))
        for reason, name in _HELD.items():
            held = int((plan.verdicts.reason == reason).sum())
            if held:
                self.metrics.provisions_held(name, held)
        self.metrics.clusters({*connected, *self.needs.clusters()})
        if self.attribution:
            attribute_plan(outcome.number, plan)
        return int((~shown.plan.verdicts.satisfied).sum())

    def _lost(self, outcome: CycleOutcome) -> I64:
        """The rows of machines that are really reclaimed."""
        rows = [
            self.book.row(order.machine)
            for order in outcome.orders
            if order.kind is ActionKind.RECLAIM
        ]
        return np.array([row for row in rows if row >= 0], np.int64)

    def finished(self, record: CycleRecord) -> None:
        """The cycle is over."""
        changes = {**self.changed_rows, "machine_changed": record.changes}
        self.changed_rows.clear()
        seconds = record.wall_ns / _NS
        phases = {name: took / _NS for name, took in record.phases.items()}
        finished = record.start_unix_nanos + record.wall_ns
        self.metrics.cycle(seconds, phases, record.trigger, changes, finished)
        if record.cycle == 1:
            self.metrics.first_decision(self.clock.monotonic() - self._started)
        self.cycles.add(record)
        if self.attribution:
            attribute_phases(record)

    def session_ended(self, cluster: str) -> None:
        """What a cluster was told is told again to its next session."""
        self.hints.forget(cluster)
        self.verdicts.forget(cluster)
