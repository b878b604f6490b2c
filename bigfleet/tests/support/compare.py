"""Run the fast engine and the oracle on one case and say where they differ."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bigfleet.decision import ActionKind, BackOff, Carry, Engine, Plan, Policy
from bigfleet.inventory import Inventory
from bigfleet.model import Machine, Need, Stamp
from bigfleet.model.columns import Demand, Symbols
from bigfleet.model.facts import ClusterFacts
from fleets import NOW, Case
from oracle import Carry as OracleCarry
from oracle import OraclePlan
from oracle import decide as oracle_decide

Actions = set[tuple[ActionKind, str, str, int]]


def fast_plan(
    case: Case, *, workers: int = 1, now: int = NOW, engine: Engine | None = None
) -> Plan:
    """The engine's plan for a case, from values to columns and through the phases."""
    symbols = Symbols()
    inventory = Inventory(symbols)
    inventory.load(case.machines)
    demand = Demand.of(case.needs, case.facts, symbols)
    carry = Carry(
        stock_outs={o: BackOff(now + 1, 1) for o in case.cooling},
        drain_seconds=case.drain_seconds,
    )
    policy = replace(case.policy, workers=workers)
    return (engine or Engine()).decide(inventory.snapshot(), demand, policy, carry, now)


def oracle_plan(case: Case, *, now: int = NOW) -> OraclePlan:
    """The oracle's plan for the same case."""
    carry = OracleCarry(cooling=frozenset(case.cooling), drain_seconds=case.drain_seconds)
    return oracle_decide(case.machines, case.needs, case.facts, case.policy, carry, now)


def actions_of(plan: Plan) -> Actions:
    """A fast plan's actions in the oracle's terms, the need apart."""
    return {(a.kind, a.machine, a.cluster, a.grace_seconds) for a in plan}


def stamps_of(plan: Plan) -> tuple[dict[str, Stamp], dict[str, Stamp]]:
    """Stamps given, and stamps machines will carry when they have drained, by machine id."""

    def read(stamps: object) -> dict[str, Stamp]:
        return {
            plan.fleet.ids[int(m)]: plan.fleet.symbols.stamp(int(i), int(s))
            for m, i, s in zip(stamps.machine, stamps.identity, stamps.sequence, strict=True)  # type: ignore[attr-defined]
        }

    return read(plan.stamps), read(plan.preempted_for)


def differences(plan: Plan, expected: OraclePlan) -> list[str]:
    """Everything in which the two disagree, in words; empty when they agree."""
    found = []
    mine = actions_of(plan)
    theirs = {(kind, m, cluster, grace) for kind, m, cluster, _, grace in expected.actions}
    for action in sorted(mine - theirs):
        found.append(f"only the engine: {action}")
    for action in sorted(theirs - mine):
        found.append(f"only the oracle: {action}")
    if plan.frozen != expected.frozen or plan.carry.frozen != expected.carry.frozen:
        found.append(f"frozen: {sorted(plan.frozen)} against {sorted(expected.frozen)}")
    if len(plan.actions) != len(expected.actions):
        found.append(f"{len(plan.actions)} actions against {len(expected.actions)}")
    stamps, meant = stamps_of(plan)
    found += _mapping("stamp", stamps, dict(expected.stamps))
    found += _mapping("meant for", meant, dict(expected.preempt_for))
    claimed = {plan.fleet.ids[int(m)] for m in (plan.claimed >= 0).nonzero()[0]}
    if claimed != set(expected.claims):
        found.append(f"claimed: {claimed ^ set(expected.claims)}")
    if len(plan.verdicts) != len(expected.verdicts):
        found.append(f"{len(plan.verdicts)} rows against {len(expected.verdicts)}")
        return found
    for row, (ident, verdict) in enumerate(expected.verdicts.items()):
        mine_v, theirs_v = _verdict(plan, row), _expected(verdict)
        if mine_v != theirs_v:
            found.append(f"row {row} {ident[0]} {ident[2]}: {mine_v} against {theirs_v}")
    return found


def _mapping(what: str, mine: dict[str, Stamp], theirs: dict[str, Stamp]) -> list[str]:
    return [
        f"{what} of {mid}: {mine.get(mid)} against {theirs.get(mid)}"
        for mid in sorted(mine.keys() | theirs.keys())
        if mine.get(mid) != theirs.get(mid)
    ]


def _verdict(plan: Plan, row: int) -> dict[str, object]:
    v = plan.verdicts
    satisfied = bool(v.satisfied[row])
    return {
        "satisfied": satisfied,
        "deficit": plan.missing(row),
        "claimed": int(v.claimed[row]),
        "idle": int(v.from_idle[row]),
        "speculative": int(v.from_speculative[row]),
        "domain": plan.domain(row),
        "reason": plan.reason(row),
        "victims": int(v.victims[row]),
        "matching": 0 if satisfied else int(v.matching[row, 1:8].sum()),
    }


def _expected(verdict: object) -> dict[str, object]:
    v = verdict
    return {
        "satisfied": v.satisfied,  # type: ignore[attr-defined]
        "deficit": v.deficit,  # type: ignore[attr-defined]
        "claimed": v.claimed,  # type: ignore[attr-defined]
        "idle": v.from_idle,  # type: ignore[attr-defined]
        "speculative": v.from_speculative,  # type: ignore[attr-defined]
        "domain": ",".join(v.domain) if v.domain else "",  # type: ignore[attr-defined]
        "reason": v.reason,  # type: ignore[attr-defined]
        "victims": v.victims,  # type: ignore[attr-defined]
        "matching": 0 if v.satisfied else sum(v.matching.values()),  # type: ignore[attr-defined]
    }


@dataclass
class Fleet:
    """An inventory and an engine that live through many cycles, for closed loops."""

    policy: Policy
    facts: dict[str, ClusterFacts]
    engine: Engine
    carry: Carry

    def plan(self, machines: list[Machine], needs: list[Need], now: int) -> Plan:
        symbols = Symbols()
        inventory = Inventory(symbols)
        inventory.load(machines)
        demand = Demand.of(needs, self.facts, symbols)
        return self.engine.decide(inventory.snapshot(), demand, self.policy, self.carry, now)
