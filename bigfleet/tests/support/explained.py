"""Explanations held against the slow oracle: changes applied to plain values, and what is printed
about them worked out again.

Nothing here is shared with `bigfleet.explanation` but its values: changes are applied to machines
and needs, not to columns, and the oracle decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bigfleet.decision import BackOff, Carry, Engine, Plan
from bigfleet.explanation import Effect, Explanation, Situation, explain
from bigfleet.explanation import changes as ch
from bigfleet.explanation.blockers import Blocker
from bigfleet.inventory import Inventory
from bigfleet.model import (
    HostRef,
    MachineState,
    Need,
    Profile,
    Requirement,
    RequirementOperator,
    Toleration,
)
from bigfleet.model.amounts.resources import is_uniform_multiple
from bigfleet.model.blockers import BlockerKind
from bigfleet.model.columns import Demand, Symbols
from bigfleet.model.demand.profile import SpreadMode
from bigfleet.model.facts import ClusterFacts
from compare import oracle_plan
from fleets import NOW, Case
from oracle import OraclePlan
from oracle.world import ident_of_need, matches_need

K = BlockerKind


@dataclass
class Told:
    """An unmet need of a generated fleet and its explanation."""

    members: list[int]
    explanation: Explanation


def situation_of(case: Case) -> Situation:
    """The columns of a case."""
    symbols = Symbols()
    inventory = Inventory(symbols)
    inventory.load(case.machines)
    demand = Demand.of(case.needs, case.facts, symbols)
    carry = Carry(
        stock_outs={o: BackOff(NOW + 1, 1) for o in case.cooling}, drain_seconds=case.drain_seconds
    )
    return Situation(inventory.snapshot(), demand, case.policy, carry, NOW)


def told_of(case: Case, most: int) -> list[Told]:
    """The first unmet needs of a case with their explanations."""
    situation, engine = situation_of(case), Engine()

    def decide(s: Situation) -> Plan:
        return engine.decide(s.fleet, s.demand, s.policy, s.carry, s.now)

    plan = decide(situation)
    found: list[Told] = []
    for row in range(len(plan.verdicts)):
        if not plan.short(row) or len(found) == most:
            continue
        v = plan.verdicts
        members = v.members[v.members_at[row] : v.members_at[row + 1]].tolist()
        explanation = explain(situation, plan, row, decide, lambda: True)
        found.append(Told(members, explanation))
    return found


# -- changes on values -----------------------------------------------------------------------


def changed(case: Case, members: Sequence[int], change: object) -> Case:
    """The case with one change."""
    match change:
        case ch.WithQuotas(slots=slots):
            quotas = dict(case.policy.quotas) if slots else {}
            for pool, count in slots:
                quotas.pop(pool, None)
                if count is not None:
                    quotas[pool] = count
            return replace(case, policy=replace(case.policy, quotas=quotas))
        case ch.WithSpendLimit(micro=micro):
            return replace(case, policy=replace(case.policy, spend_limit_micro=micro))
        case ch.OfferingsRestocked(offerings=offerings):
            return replace(case, cooling=case.cooling - set(offerings or case.cooling))
        case ch.ClusterConnected():
            cluster = case.needs[members[0]].cluster
            known = case.facts[cluster]
            fact = ClusterFacts(known.reported, False, known.overhead)
            return replace(case, facts={**case.facts, cluster: fact})
        case ch.MachinesAdded(like=like, count=count):
            model = next(m for m in case.machines if m.id == like)
            idle = replace(
                model, state=MachineState.IDLE, host=HostRef("p", "new"), cluster="", stamp=None,
                leaving=None, interruption_at_ns=0, not_ready_since_ns=0, do_not_disrupt=False,
                pods=None, excluded=False, reserved=False, backing_off=False, last_error="",
                idle_since_ns=NOW,
            )  # fmt: skip
            more = [replace(idle, id=name) for name in ch.added_ids(count)]
            return replace(case, machines=[*case.machines, *more])
    return with_needs(case, {i: _altered(case.needs[i], change) for i in members})


def with_needs(case: Case, altered: dict[int, Need]) -> Case:
    """Other needs at these places, none of them equal to another one."""
    needs = list(case.needs)
    for i, need in altered.items():
        others = {ident_of_need(other) for place, other in enumerate(needs) if place != i}
        while ident_of_need(need) in others:
            need = replace(need, size_class=need.size_class + "+")
        needs[i] = need
    return replace(case, needs=needs)


def _altered(need: Need, change: object) -> Need:
    p = need.profile
    requirements, spread, priority, interruption = (
        list(p.requirements), list(p.spread), p.priority, p.interruption,
    )  # fmt: skip
    match change:
        case ch.WithoutRequirement(requirement=requirement):
            if requirement in requirements:
                requirements.remove(requirement)
            else:
                # A default of its cluster: with any word on the label the need is free of it.
                exists = RequirementOperator.EXISTS
                requirements.append(Requirement.of(requirement.key, exists))
        case ch.AddedToleration(taint=taint):
            more = Toleration.of(taint.key, "Equal", taint.value, taint.effect)
            return replace(need, profile=_tolerant(p, more))
        case ch.AcrossDomains():
            requirements = [r for r in requirements if r.operator.value != "Same"]
            spread = [s for s in spread if s.when is not SpreadMode.DO_NOT_SCHEDULE]
        case ch.Interruptible():
            interruption = type(interruption)(26)
        case ch.WithPriority(priority=given):
            priority = given
        case ch.WithoutDimension(name=name):
            return replace(
                need,
                aggregate={d: v for d, v in need.aggregate.items() if d != name},
                min_unit={d: v for d, v in need.min_unit.items() if d != name},
            )
        case ch.PieceSize(unit=unit):
            return replace(need, min_unit=dict(unit))
        case ch.ChangedAggregate(aggregate=aggregate):
            return replace(need, aggregate=dict(aggregate))
        case _:
            raise AssertionError(change)
    return replace(
        need,
        profile=Profile.of(
            requirements, spread, priority, interruption, p.reclamation, p.tolerations
        ),
    )


def _tolerant(profile: Profile, more: Toleration) -> Profile:
    return replace(profile, tolerations=tuple(sorted({*profile.tolerations, more})))


def without(case: Case, members: Sequence[int], blockers: Sequence[Blocker]) -> Case:
    """The case with these blockers removed, by the table of what removal means."""
    for blocker in blockers:
        match blocker.kind:
            case K.BOOTSTRAP:
                case = changed(case, members, ch.ClusterConnected())
            case K.REQUIREMENT:
                assert blocker.requirement is not None
                case = changed(case, members, ch.WithoutRequirement(blocker.requirement))
            case K.TAINT:
                case = changed(case, members, ch.AddedToleration(blocker.taint))
            case K.SIZE:
                case = changed(case, members, ch.PieceSize())
            case K.DIMENSION:
                case = changed(case, members, ch.WithoutDimension(blocker.dimension))
            case K.INTERRUPTION:
                case = changed(case, members, ch.Interruptible())
            case K.TOPOLOGY:
                case = changed(case, members, ch.AcrossDomains())
            case K.STOCK_OUT:
                case = replace(case, cooling=set())
            case K.QUOTA:
                case = replace(case, policy=replace(case.policy, quotas={}))
            case K.SPEND_LIMIT:
                case = replace(case, policy=replace(case.policy, spend_limit_micro=None))
            case K.PRIORITY:
                case = changed(case, members, ch.WithPriority(2**31 - 1))
    if any(blocker.kind is K.AMOUNT for blocker in blockers):
        case = with_needs(case, {i: _only_what_exists(case, case.needs[i]) for i in members})
    return case


def _only_what_exists(case: Case, need: Need) -> Need:
    """No more than machines that match hold together, one piece at least."""
    overhead = case.facts[need.cluster].overhead
    demanded = [d for d, v in need.aggregate.items() if v > 0]
    plain = replace(need, profile=need.profile.without_same())
    units = is_uniform_multiple(need.aggregate, need.min_unit)
    total: Counter[str] = Counter()
    for m in case.machines:
        if m.state is MachineState.FAILED or m.is_kept_out or m.interruption_at_ns > 0:
            continue
        offer = {d: max(0, v - overhead.get(d, 0)) for d, v in m.effective_allocatable.items()}
        if not matches_need(plain, m, case.facts[need.cluster]):
            continue
        if any(offer.get(d, 0) < v for d, v in need.min_unit.items()):
            continue
        if any(offer.get(d, 0) <= 0 for d in demanded):
            continue
        if units is None:
            total.update({d: offer[d] for d in demanded})
        else:
            whole = min(offer[d] // v for d, v in need.min_unit.items() if v > 0)
            total.update({d: whole * need.min_unit[d] for d in demanded})
    if any(not total[d] for d in demanded):
        return need
    if units is None:
        capped = {d: min(v, total[d]) for d, v in need.aggregate.items()}
        return replace(need, aggregate=capped)
    whole = min(total[d] // v for d, v in need.min_unit.items() if v > 0)
    units = min(units, whole)
    return replace(need, aggregate={d: units * v for d, v in need.min_unit.items()})


# -- what the oracle says --------------------------------------------------------------------


def met(case: Case, members: Sequence[int]) -> bool:
    """Whether the oracle leaves the need short of nothing."""
    return not any(v.short for v in _verdicts(oracle_plan(case), case, members))


def _verdicts(plan: OraclePlan, case: Case, members: Sequence[int]) -> list:  # type: ignore[type-arg]
    mine = {ident_of_need(case.needs[i]) for i in members}
    return [v for v in plan.verdicts.values() if mine & set(v.members)]


def effect(before: Case, old: OraclePlan, after: Case, members: Sequence[int]) -> Effect:
    """What the oracle's decision gives the need, and takes from others, beside the `old` one."""
    new = oracle_plan(after)
    mine = _verdicts(new, after, members)
    by_ident = {ident_of_need(need): need for need in after.needs}
    asked: Counter[str] = Counter()
    lacks: Counter[str] = Counter()
    for verdict in mine:
        lacks.update(verdict.short)
        for ident in verdict.members:
            asked.update(by_ident[ident].aggregate)
    was = {ident: v for v in old.verdicts.values() for ident in v.members}
    now = {ident: v for v in new.verdicts.values() for ident in v.members}
    unmet: Counter[int] = Counter()
    less: Counter[int] = Counter()
    for place, need in enumerate(after.needs):
        if place in members:
            continue
        v, w = was[ident_of_need(before.needs[place])], now[ident_of_need(need)]
        if w.short and not v.short:
            unmet[need.profile.priority] += 1
        elif w.short and set(v.members) == set(w.members):
            less[need.profile.priority] += any(a > v.short.get(d, 0) for d, a in w.short.items())
    subjects = {ident_of_need(after.needs[i]) for i in members}
    return Effect(
        met=not any(v.short for v in mine),
        got={d: max(0, v - lacks[d]) for d, v in asked.items()},
        asked=dict(asked),
        become_unmet=dict(sorted(unmet.items())),
        get_less={p: n for p, n in sorted(less.items()) if n},
        preempted=sum(
            kind.title == "Preempt" and ident is not None and _is_for(new, ident, subjects)
            for kind, _, _, ident, _ in new.actions
        ),
    )


def _is_for(plan: OraclePlan, ident: tuple[object, ...], subjects: set[tuple[object, ...]]) -> bool:
    return bool(set(plan.verdicts[ident].members) & subjects)
