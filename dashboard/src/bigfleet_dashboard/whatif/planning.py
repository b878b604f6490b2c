"""Both states decided by the engine, and what differs: actions, unmet needs, money.

Runs in a process of its own, so everything that comes in and goes out is plain data. Money is what
the machines cost that would serve or be kept when the plan is carried out: what it settles at, not
what the first minute costs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from bigfleet.decision import Engine, Plan, Policy
from bigfleet.inventory import Inventory
from bigfleet.model import CapacityType, MachineState, Need, aggregate_rows, format_resources
from bigfleet.model.columns import Demand as DemandColumns
from bigfleet.model.columns import Symbols
from bigfleet.model.facts import ClusterFacts
from bigfleet_dashboard.state.needs import CLASSES, priority_class
from bigfleet_dashboard.whatif.changes import apply_all, read_changes
from bigfleet_dashboard.whatif.scenario import NOW, Present, read_present

MOST_NEEDS: Final = 50
_OWNED: Final = (int(CapacityType.BARE_METAL), int(CapacityType.RESERVED))
_engine: list[Engine] = []


@dataclass(frozen=True, slots=True)
class Outcome:
    """One state decided."""

    document: dict[str, object]
    unmet: Mapping[str, dict[str, object]]
    """By a key that is the same in both states."""


def compare(data: bytes, changes: list[object]) -> dict[str, object]:
    """The present state and the changed one, side by side."""
    present = read_present(data)
    before = decide(present)
    after = decide(apply_all(present, read_changes(changes)))
    newly = [need for key, need in after.unmet.items() if key not in before.unmet]
    relieved = [need for key, need in before.unmet.items() if key not in after.unmet]
    return {
        "before": before.document,
        "after": after.document,
        "newly_unmet": newly[:MOST_NEEDS],
        "newly_unmet_count": len(newly),
        "relieved": relieved[:MOST_NEEDS],
        "relieved_count": len(relieved),
    }


def decide(present: Present) -> Outcome:
    """One cycle of the engine over a state."""
    if not _engine:
        _engine.append(Engine())
    symbols = Symbols()
    inventory = Inventory(symbols)
    inventory.load(present.machines)
    needs = aggregate_rows(present.needs)
    clusters = {need.cluster for need in needs} | {m.cluster for m in present.machines if m.cluster}
    facts = {cluster: ClusterFacts() for cluster in sorted(clusters)}
    demand = DemandColumns.of(needs, facts, symbols)
    policy = Policy(reclaim_hold=0)
    plan = _engine[0].decide(inventory.snapshot(), demand, policy, now=NOW)
    return Outcome(_document(present, plan, needs), _unmet(plan, needs))


def _document(present: Present, plan: Plan, needs: list[Need]) -> dict[str, object]:
    fleet = plan.fleet
    serving = plan.claimed >= 0
    serving[plan.preempted_for.machine] = True
    kinds = np.array([int(o[3]) for o in fleet.classes.offerings] or [0], np.int64)
    offering = np.asarray(fleet.classes.offering)
    kind = kinds[offering[fleet.cls]] if len(fleet) else np.zeros(0, np.int64)
    alive = (fleet.state > 0) & (fleet.state != MachineState.FAILED)
    there = alive & (fleet.state != MachineState.SPECULATIVE)
    kept = there & np.isin(kind, _OWNED)
    price = fleet.classes.price[fleet.cls] / 1e6 if len(fleet) else np.zeros(0)
    unmet = _unmet(plan, needs)
    by_class = Counter(str(need["priority_class"]) for need in unmet.values())
    clusters = fleet.symbols.clusters
    bound: Counter[str] = Counter()
    for count, name in _serving_clusters(plan):
        bound[name] += count
    return {
        "machines": int(alive.sum()),
        "needs": len(needs),
        "actions": plan.counts(),
        "unmet": len(unmet),
        "unmet_by_class": {name: by_class[name] for name in CLASSES},
        "machines_serving": int(serving.sum()),
        "machines_by_capacity_type": {
            each.camel: int((serving & (kind == int(each))).sum()) for each in CapacityType if each
        },
        "machines_by_cluster": dict(sorted(bound.items())),
        "dollars_per_hour": round(float(price[serving | kept].sum()), 4),
        "dollars_per_hour_now": round(float(price[there].sum()), 4),
        "clusters": len(clusters),
    }


def _serving_clusters(plan: Plan) -> list[tuple[int, str]]:
    """How many machines would serve each cluster: by the row that claims them."""
    rows = plan.claimed[plan.claimed >= 0]
    found = []
    for row, count in enumerate(np.bincount(rows, minlength=len(plan.verdicts)).tolist()):
        if count:
            identity = int(plan.demand.identity[plan.need_of(row)])
            found.append((count, plan.demand.symbols.stamp(identity, 0).cluster))
    for identity in plan.preempted_for.identity.tolist():
        found.append((1, plan.demand.symbols.stamp(int(identity), 0).cluster))
    return found


def _unmet(plan: Plan, needs: list[Need]) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for row in np.flatnonzero(~plan.verdicts.satisfied).tolist():
        need = needs[plan.need_of(row)]
        key = "\x00".join((need.cluster, *need.key))
        found[key] = {
            "cluster": need.cluster,
            "priority": need.profile.priority,
            "priority_class": priority_class(need.profile.priority),
            "reason": plan.reason(row).name,
            "missing": format_resources(plan.missing(row)),
            "group": need.group or None,
        }
    return found
