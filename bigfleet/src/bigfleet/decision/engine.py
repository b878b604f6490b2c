"""The engine: snapshot + demand + policy + carry + now -> plan.

A pure function. ``Engine`` only keeps what can be derived again from the arguments (which class
holds which requirements) and memory to work in; two engines given the same arguments give the
same plan, bit for bit.

    normalise -> credit -> assign -> preempt -> reclaim, release -> verdicts
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bigfleet.decision.arrange import Arranged, arrange, facts_of, list_holdings
from bigfleet.decision.carry import Carry
from bigfleet.decision.concurrency import assign_with_workers
from bigfleet.decision.domains import Topology
from bigfleet.decision.finish import finish
from bigfleet.decision.kernels import assign as phase1
from bigfleet.decision.kernels import preempt as phase2
from bigfleet.decision.kernels import reclaim as phase3
from bigfleet.decision.kernels.classify import loose, survey
from bigfleet.decision.kernels.layout import (
    CONFIGURED,
    ENDING_SOON,
    NOT_READY,
    PHANTOM,
    Classes,
    Facts,
    Holdings,
    Identities,
    Machines,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.matching import Matcher
from bigfleet.decision.normalise import Normalised, normalise
from bigfleet.decision.plan import Counters, Plan
from bigfleet.decision.policy import Policy
from bigfleet.decision.tables import Amounts, class_columns, scale_amounts
from bigfleet.decision.victims import victim_tables
from bigfleet.decision.work import Room, make_scratch, make_work
from bigfleet.model.columns import Demand, MachineColumns

Clock = Callable[[], float]


def _no_clock() -> float:
    return 0.0


@dataclass
class Cycle:
    """All arrays of one cycle under the names the kernels use."""

    ma: Machines
    cl: Classes
    ids: Identities
    ro: Rows
    fa: Facts
    ho: Holdings
    wo: Work
    sc: Scratch
    rows: int
    sub_rows: np.ndarray  # type: ignore[type-arg]
    amounts: Amounts
    normal: Normalised
    arranged: Arranged
    domain_names: dict[int, list[str]]


@dataclass
class Engine:
    """Decides; give it a clock to have the phases timed."""

    clock: Clock = _no_clock
    _matcher: Matcher = field(default_factory=Matcher)
    _room: Room = field(default_factory=Room)

    def decide(
        self,
        fleet: MachineColumns,
        demand: Demand,
        policy: Policy | None = None,
        carry: Carry | None = None,
        now: int = 0,
    ) -> Plan:
        """One cycle."""
        policy, carry = policy or Policy(), carry or Carry()
        times = [self.clock()]
        cycle = self._normalise(fleet, demand, policy, carry, now)
        times.append(self.clock())
        counters = self._assign(cycle, policy)
        times.append(self.clock())
        self._preempt(cycle, fleet, policy)
        times.append(self.clock())
        plan = self._reclaim(cycle, fleet, demand, policy, carry, now, counters)
        times.append(self.clock())
        names = ("normalise", "phase1", "phase2", "phase3")
        plan.seconds.update(  # type: ignore[attr-defined]
            {name: b - a for name, a, b in zip(names, times, times[1:], strict=False)}
        )
        self._matcher.forget_unused()
        return plan

    def _normalise(
        self, fleet: MachineColumns, demand: Demand, policy: Policy, carry: Carry, now: int
    ) -> Cycle:
        amounts = scale_amounts(fleet, demand)
        classes = class_columns(fleet.classes, amounts.offers, policy, carry, now)
        topology = Topology(fleet, self._matcher)
        ma = _machines(fleet, policy, now)
        base = max(carry.last_sequence + 1, now)
        by_state = np.zeros((len(fleet.classes), 9), np.int64)
        if len(topology.gangs(demand)):
            valid = ma.state > 0
            index = ma.cls[valid].astype(np.int64) * 9 + ma.state[valid]
            by_state = np.bincount(index, minlength=by_state.size).reshape(by_state.shape)
        normal = normalise(fleet, ma, demand, amounts, topology, by_state, carry.folds, base)
        arranged = arrange(demand, amounts, normal, topology)
        ma = ma._replace(columns=topology.stacked_columns())
        rows = arranged.rows
        room = self._room
        used, spend = np.zeros(max(1, len(fleet.classes.pools)), np.int64), np.zeros(1, np.int64)
        by_state, exact, free = survey(ma, classes, arranged.identities, len(normal), used, spend)
        facts, names = facts_of(
            fleet, demand, arranged, topology, amounts, policy, classes, free
        )
        gang_columns = sorted(
            {int(facts.domain_column[k]) for k in np.unique(rows.domain_key) if k >= 0} - {-1}
        )
        limited = policy.spend_limit_micro is not None or bool(policy.quotas)
        holdings = list_holdings(
            ma, arranged.identities, fleet.symbols.key_count, exact[:-1], free, gang_columns,
            int(facts.domain_count.max(initial=0)), limited=limited,
        )  # fmt: skip
        work = make_work(room, len(fleet), rows, classes, facts, fleet.symbols.identity_count)
        work.used[:], work.spend[:] = used, spend
        work.position[:] = holdings.bucket_at[:-1]
        scratch = make_scratch(room, len(fleet), rows, classes, facts)
        return Cycle(
            ma, classes, arranged.identities, rows, facts, holdings, work, scratch, len(normal),
            arranged.sub_rows, amounts, normal, arranged, names,
        )  # fmt: skip

    def _assign(self, c: Cycle, policy: Policy) -> Counters:
        phase1.credit_stamped(c.ma, c.cl, c.ids, c.ro, c.fa, c.ho, c.wo, c.sc, c.rows)
        wanted = phase1.wanting_clusters(c.ro, c.wo, c.rows, len(c.fa.reported))
        if wanted.any():
            at, machines = loose(c.ma, c.ids, c.wo.claim, wanted, len(c.fa.reported))
        else:
            at, machines = np.zeros(len(c.fa.reported) + 1, np.int64), np.zeros(0, np.int32)
        c.ho = c.ho._replace(loose_at=at, loose=machines)
        phase1.credit_gangs(c.ma, c.cl, c.ids, c.ro, c.fa, c.ho, c.wo, c.sc, c.rows)
        phase1.credit_loose(c.ma, c.cl, c.ids, c.ro, c.fa, c.ho, c.wo, c.sc, c.rows)
        arrays = (c.ma, c.cl, c.ids, c.ro, c.fa, c.ho, c.wo, c.sc)
        if policy.workers > 1:
            return assign_with_workers(arrays, c.rows, c.sub_rows, policy.workers, self._room)
        phase1.assign(*arrays, 0, c.rows, c.sub_rows)
        return Counters()

    def _preempt(self, c: Cycle, fleet: MachineColumns, policy: Policy) -> None:
        unmet = phase2.any_unmet(c.ro, c.wo, c.rows)
        if not unmet:
            return
        tables = victim_tables(c.ro, c.ids)
        lists = phase2.victim_lists(
            c.ma, c.cl, c.ids, c.ro, c.fa, c.wo, tables.of_row, tables.of_identity,
            len(tables.priority),
        )  # fmt: skip
        budget = np.full(len(c.fa.reported), -1, np.int64)
        if policy.reclaim_budget is not None:
            for number, cluster in enumerate(fleet.symbols.clusters):
                budget[number] = max(0, policy.reclaim_budget.get(cluster, 0))
        weights = policy.weights
        phase2.preempt(
            c.ma, c.cl, c.ids, c.ro, c.fa, c.ho, c.wo, c.sc, c.rows, *lists, tables.priority,
            tables.worth,
            np.array([weights.priority, weights.drain, weights.interruption, weights.reclamation]),
            budget,
        )  # fmt: skip
        phase2.settle(c.ma, c.cl, c.ro, c.fa, c.wo, c.sc)

    def _reclaim(
        self,
        c: Cycle,
        fleet: MachineColumns,
        demand: Demand,
        policy: Policy,
        carry: Carry,
        now: int,
        counters: Counters,
    ) -> Plan:
        since = np.zeros(len(fleet), np.int64)
        known = min(len(since), len(carry.unclaimed_since))
        since[:known] = carry.unclaimed_since[:known]
        reclaims, since = phase3.reclaim(
            c.ma, c.ids, c.ro, c.fa, c.wo, since, now, policy.reclaim_hold
        )
        releases = phase3.release(c.ma, c.cl, c.ids, c.ro, c.wo, c.ho.bucket, now)
        counts = phase3.tally(c.ma, c.ro, c.wo, c.rows)
        return finish(
            c, fleet, demand, policy, carry, now, counters, reclaims, releases, since, counts
        )


def _machines(fleet: MachineColumns, policy: Policy, now: int) -> Machines:
    """The fleet's columns, with phantoms and near ends marked in a copy of the flags."""
    flags = fleet.flags
    if fleet.not_ready_since or fleet.ending_at:
        flags = flags.copy()
        for row, ends in fleet.ending_at.items():
            if now >= ends - policy.interruption_lead:
                flags[row] |= ENDING_SOON
        _mark_phantoms(fleet, policy, now, flags)
    return Machines(
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


def _mark_phantoms(
    fleet: MachineColumns, policy: Policy, now: int, flags: np.ndarray  # type: ignore[type-arg]
) -> None:
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


