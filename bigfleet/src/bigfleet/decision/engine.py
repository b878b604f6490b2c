"""The engine: snapshot + demand + policy + carry + now -> plan.

A pure function. ``Engine`` only keeps what can be derived again from the arguments (which class
holds which requirements, what rows are apart from their amounts) and memory to work in; two engines
given the same arguments give the same plan, bit for bit.

    divide -> normalise -> credit -> assign -> preempt -> reclaim, release -> verdicts
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bigfleet.decision.buffers import BufferPool, make_scratch, make_work
from bigfleet.decision.cancel_word import CancelWord
from bigfleet.decision.carry import Carry
from bigfleet.decision.concurrency import assign_with_workers
from bigfleet.decision.cycle_arrays import CycleArrays
from bigfleet.decision.cycle_tables import FactTables, list_holdings
from bigfleet.decision.domains import CycleTopology
from bigfleet.decision.finish import finish
from bigfleet.decision.interning import Memo
from bigfleet.decision.kernels import entry
from bigfleet.decision.kernels import reclaim as phase3
from bigfleet.decision.kernels.classify import survey
from bigfleet.decision.kernels.layout import (
    CONFIGURED,
    ENDING_SOON,
    NOT_READY,
    PHANTOM,
    U16,
    MachineArrays,
)
from bigfleet.decision.kernels.preempt import any_unmet
from bigfleet.decision.kernels.references import refer
from bigfleet.decision.matcher import Matcher
from bigfleet.decision.normalise import Normaliser
from bigfleet.decision.plan import Counters, Plan
from bigfleet.decision.policy import Policy
from bigfleet.decision.row_columns import RowArranger
from bigfleet.decision.tables import Tables
from bigfleet.decision.victims import no_victims, victims_of
from bigfleet.decision.work_budget import Share, WorkBudget
from bigfleet.model.columns import Demand, MachineColumns

Clock = Callable[[], float]
PHASES = ("normalise", "phase1", "phase2", "phase3")


def _no_clock() -> float:
    return 0.0


@dataclass
class Engine:
    """Decides; give it a clock to have the phases timed."""

    clock: Clock = _no_clock
    cancel: CancelWord = field(default_factory=CancelWord)
    """Set it from any thread to have `decide` raise DecisionCancelledError soon."""
    _budget: WorkBudget = field(default_factory=WorkBudget)
    _matcher: Matcher = field(default_factory=Matcher)
    _tables: Tables = field(default_factory=Tables)
    _normaliser: Normaliser = field(default_factory=Normaliser)
    _arranger: RowArranger = field(default_factory=RowArranger)
    _facts: FactTables = field(default_factory=FactTables)
    _classes: Memo[Any] = field(default_factory=Memo)
    _buffers: BufferPool = field(default_factory=BufferPool)

    def decide(
        self, fleet: MachineColumns, demand: Demand, policy: Policy | None = None, carry: Carry |
        None = None, now: int = 0,
    ) -> Plan:  # fmt: skip
        """One cycle; DecisionCancelledError where it was cancelled."""
        policy, carry = policy or Policy(), carry or Carry()
        times = [self.clock()]
        share = self._budget.divide(fleet, demand, policy)
        cycle = self._normalise(fleet, share.decided, policy, carry, now)
        times.append(self.clock())
        counters = self._assign(cycle, policy)
        times.append(self.clock())
        self._preempt(cycle, fleet, policy)
        times.append(self.clock())
        plan = self._reclaim(cycle, fleet, share, policy, carry, now, counters)
        times.append(self.clock())
        for name, start, end in zip(PHASES, times, times[1:], strict=False):
            plan.seconds[name] = end - start
        self._matcher.forget_unused()
        return plan

    def _normalise(
        self, fleet: MachineColumns, demand: Demand, policy: Policy, carry: Carry, now: int
    ) -> CycleArrays:
        tables = self._tables
        clusters = tables.clusters(demand)
        amounts = tables.amounts(fleet, demand, clusters)
        classes = tables.classes(fleet.classes, amounts.offers, policy, carry, now)
        topology = CycleTopology(fleet, self._matcher, clusters)
        machines = _machines(fleet, policy, now)
        base = max(carry.last_sequence + 1, now)
        self.cancel.check()
        normal = self._normaliser.normalise(machines, demand, amounts, topology, carry.folds, base)
        self.cancel.check()
        arranged = self._arranger.arrange(demand, amounts, normal, topology, clusters)
        machines = machines._replace(columns=topology.stacked_columns())
        rows, ids = arranged.rows, arranged.identities
        ma, ref_ids = refer(machines), refer(ids)
        cl = self._classes.get((classes,), (), lambda: refer(classes))
        used, spend = np.zeros(max(1, len(fleet.classes.pools)), np.int64), np.zeros(1, np.int64)
        self.cancel.check()
        exact, free = survey(ma, cl, ref_ids, len(normal), used, spend)
        facts, names = self._facts.facts_of(
            fleet, arranged, topology, clusters, amounts, policy, classes, free
        )
        scratch = make_scratch(self._buffers, len(fleet), rows, classes, facts)
        gang_columns = {int(facts.domain_column[k]) for k in np.unique(rows.domain_key) if k >= 0}
        domain_keys = len(facts.domain_column) if gang_columns else 0
        sc = refer(scratch)
        holdings = list_holdings(
            machines, ma, ref_ids, sc, ids, fleet.symbols.key_count, len(facts.reported),
            exact[:-1], free, sorted(gang_columns - {-1}), domain_keys,
            int(facts.domain_count.max(initial=0)), self._buffers,
            limited=policy.spend_limit_micro is not None or bool(policy.quotas),
        )  # fmt: skip
        work = make_work(
            self._buffers,
            len(fleet),
            rows,
            classes,
            facts,
            fleet.symbols.identity_count,
            self.cancel.cell,
        )
        work.used[:], work.spend[:] = used, spend
        work.position[:] = holdings.bucket_at[:-1]
        return CycleArrays(
            ma=machines, cl=classes, ids=ids, ro=rows, fa=facts, ho=holdings, wo=work, sc=scratch,
            refs=(ma, cl, ref_ids, refer(rows), refer(facts), refer(holdings), refer(work), sc),
            rows=len(normal), sub_rows=arranged.sub_rows, amounts=amounts, normal=normal,
            domain_names=names,
        )  # fmt: skip

    def _assign(self, c: CycleArrays, policy: Policy) -> Counters:
        run(c, entry.CREDIT)
        self.cancel.check()
        counters = Counters()
        if policy.workers > 1:
            counters = assign_with_workers(c, policy.workers, self._buffers)
        else:
            run(c, entry.ASSIGN)
        self.cancel.check()
        return counters

    def _preempt(self, c: CycleArrays, fleet: MachineColumns, policy: Policy) -> None:
        if any_unmet(c.refs[3], c.refs[6], c.rows):
            run(c, entry.PREEMPT, refer(victims_of(c, fleet, policy)))
            self.cancel.check()

    def _reclaim(
        self, c: CycleArrays, fleet: MachineColumns, share: Share, policy: Policy, carry: Carry,
        now: int, counters: Counters,
    ) -> Plan:  # fmt: skip
        since = np.zeros(len(fleet), np.int64)
        known = min(len(since), len(carry.unclaimed_since))
        since[:known] = carry.unclaimed_since[:known]
        ma, cl, ids, ro, fa, _, wo, _ = c.refs
        reclaims = phase3.reclaim(ma, ids, ro, fa, wo, since, now, policy.reclaim_hold)
        releases = phase3.release(ma, cl, ids, ro, fa, wo, c.ho.bucket, now)
        counts = phase3.tally(ma, ro, wo, c.rows)
        return finish(
            c, fleet, share, policy, carry, now, counters, reclaims, releases, since, counts
        )


def run(c: CycleArrays, stage: int, victims: Any = None) -> None:
    """Run one stage over all rows."""
    none32, none64 = np.zeros(1, np.int32), np.zeros(1, np.int64)
    vi = no_victims() if victims is None else victims
    entry.run(stage, *c.refs, vi, 0, c.rows, c.sub_rows, none32, none32, none64, none64, 0)


def _machines(fleet: MachineColumns, policy: Policy, now: int) -> MachineArrays:
    """The fleet's columns, with phantoms and near ends marked in a copy of the flags."""
    flags = fleet.flags
    if fleet.not_ready_since or fleet.ending_at:
        flags = flags.copy()
        for row, ends in fleet.ending_at.items():
            if now >= ends - policy.interruption_lead:
                flags[row] |= ENDING_SOON
        _mark_phantoms(fleet, policy, now, flags)
    return MachineArrays(
        state=fleet.state,
        cls=fleet.cls,
        cluster=fleet.cluster,
        stamp=fleet.stamp,
        sequence=fleet.sequence,
        leaving_for=fleet.leaving_for,
        flags=flags,
        idle_since=fleet.idle_since,
        pods=fleet.pods,
        order=fleet.order,
        rank=fleet.rank,
        columns=np.zeros((1, 0), np.int32),
    )


def _mark_phantoms(fleet: MachineColumns, policy: Policy, now: int, flags: U16) -> None:
    """Configured, but no Ready node for too long; unless the whole cluster looks like that."""
    late = [
        row
        for row, since in fleet.not_ready_since.items()
        if fleet.state[row] == CONFIGURED
        and flags[row] & NOT_READY
        and now - since > policy.readiness_deadline
    ]
    if not late:
        return
    rows = np.array(late)
    clusters = fleet.cluster[rows]
    bound = fleet.cluster[fleet.state == CONFIGURED]
    total = np.bincount(bound[bound >= 0], minlength=int(clusters.max()) + 1)
    count = np.bincount(clusters[clusters >= 0], minlength=len(total))
    outage = (count > policy.phantom_fraction * total) & (count >= policy.phantom_minimum)
    flags[rows[(clusters >= 0) & ~outage[clusters]]] |= PHANTOM
