"""Inventory, demand, shortfalls and spend, all of one cycle, counted when Prometheus scrapes.

A cycle leaves the snapshot it decided on and what its ledger counted, in one assignment; the
scrape's own thread does the counting, once per cycle. So gauges of one scrape agree with each
other, and a cycle pays nothing for them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bigfleet.decision import Plan, Policy
from bigfleet.model import CapacityType, MachineState
from bigfleet.model.columns import Demand, Flag, MachineColumns
from bigfleet.model.lifecycle import TRANSITIONAL
from bigfleet.observe.metrics import CAPACITY_TYPES, PENALTY_BUCKETS, PRIORITY_CLASSES, STATES

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
S = MachineState

AGE_BUCKETS: Final = ("1-9", "10-59", "60-299", "300+")
PHANTOMS: Final = ("node_not_ready", "absent", "state_conflict")
MOVING: Final = tuple(sorted(TRANSITIONAL))
_TYPES, _BUCKETS = len(CAPACITY_TYPES), len(PENALTY_BUCKETS)
_NS: Final = 1e9
_COUNTED_AS: Final = np.array([0, 0, 1, 2, 3], np.int64)
"""Capacity type of the wire -> place in the labels. Unspecified is never given back, like owned
hardware, and is counted as that."""


@dataclass(frozen=True, slots=True)
class ShortfallCounts:
    """Entries of the shortfall ledger, in all and in two partitions."""

    total: int = 0
    by_priority: tuple[int, ...] = (0,) * len(PRIORITY_CLASSES)
    by_age: tuple[int, ...] = (0,) * len(AGE_BUCKETS)


@dataclass(frozen=True)
class LastDecision:
    """What a cycle leaves behind for its gauges."""

    plan: Plan
    policy: Policy
    now: int
    shortfalls: ShortfallCounts
    oldest: Mapping[MachineState, int]
    """Since when, in Unix nanoseconds, the oldest machine of a moving state is in it."""
    phantoms: Mapping[str, int] = field(default_factory=dict)
    """What reconcile knows: `absent` and `state_conflict`."""


@dataclass(frozen=True, slots=True)
class FleetCounts:
    """The numbers of one cycle."""

    machines: I64
    """[state, capacity type, penalty bucket], states from Speculative on."""
    demand: I64
    spend: F64
    """[state, capacity type] in dollars per hour."""
    not_ready: int


def capacity_label(capacity_type: CapacityType) -> str:
    """How a capacity type is counted."""
    return CAPACITY_TYPES[int(_COUNTED_AS[capacity_type])]


def count(fleet: MachineColumns, demand: Demand, policy: Policy, now: int) -> FleetCounts:
    """Count a snapshot."""
    state = fleet.state.astype(np.int64)
    kind = np.zeros(len(fleet), np.int64)
    price = np.zeros(len(fleet), np.float64)
    if len(fleet.classes):
        kind = _COUNTED_AS[fleet.classes.capacity_type][fleet.cls]
        price = (fleet.classes.price / 1e6)[fleet.cls]
    place = state * _TYPES + kind
    size = (len(STATES) + 1) * _TYPES
    machines = np.bincount(place * _BUCKETS + _bucket(fleet), minlength=size * _BUCKETS)
    spend: F64 = np.bincount(place, weights=price, minlength=size).astype(np.float64)
    shape = (len(STATES) + 1, _TYPES)
    return FleetCounts(
        machines=machines.reshape(*shape, _BUCKETS)[1:],
        demand=_rows(demand),
        spend=spend.reshape(shape)[1:],
        not_ready=not_ready(fleet, policy, now),
    )


def _bucket(fleet: MachineColumns) -> I64:
    """Per machine, the penalty of the need it serves; 0 for those that serve none."""
    column = fleet.symbols.identity_column("interruption")
    if not len(column):
        return np.zeros(len(fleet), np.int64)
    labels = np.maximum(column - 1, 0)
    bound = (fleet.cluster >= 0) & (fleet.stamp >= 0)
    return np.where(bound, labels[np.maximum(fleet.stamp, 0)], 0)


def _rows(demand: Demand) -> I64:
    if not len(demand):
        return np.zeros(_BUCKETS, np.int64)
    column = demand.symbols.identity_column("interruption")[demand.identity]
    return np.bincount(np.maximum(column - 1, 0), minlength=_BUCKETS)


def not_ready(fleet: MachineColumns, policy: Policy, now: int) -> int:
    """Bound machines that are not Ready nodes past the deadline and so no longer count as supply.

    Where a large share of a cluster looks like that, it is the cluster's outage: they count.
    """
    late = [
        row
        for row, since in fleet.not_ready_since.items()
        if fleet.state[row] == S.CONFIGURED
        and fleet.flags[row] & Flag.NOT_READY
        and now - since > policy.readiness_deadline
    ]
    clusters = fleet.cluster[late]
    clusters = clusters[clusters >= 0]
    if not len(clusters):
        return 0
    bound = fleet.cluster[fleet.state == S.CONFIGURED]
    total = np.bincount(bound[bound >= 0], minlength=int(clusters.max()) + 1)
    counts = np.bincount(clusters, minlength=len(total))
    outage = (counts > policy.phantom_fraction * total) & (counts >= policy.phantom_minimum)
    return int(counts[~outage].sum())


class FleetCollector(Collector):
    """The fleet gauges of a registry."""

    def __init__(self, prefix: str, now: Callable[[], int]) -> None:
        self._prefix = prefix
        self._now = now
        self._decided: LastDecision | None = None
        self._counted: tuple[weakref.ref[LastDecision], FleetCounts] | None = None
        self._used = np.zeros((len(STATES), _TYPES, _BUCKETS), np.bool_)
        self._used[:, :, 0] = True
        self._used[STATES.index("Configured")] = True

    def decided(self, decided: LastDecision) -> None:
        """The newest cycle. One assignment, read by the thread that scrapes."""
        self._decided = decided

    def describe(self) -> list[Metric]:
        """Names alone, so that registering counts nothing."""
        return [Metric(self._prefix + name, "", "gauge") for name in _MEANINGS]

    def collect(self) -> Iterator[Metric]:
        """Every fleet gauge, of one cycle."""
        decided = self._decided
        yield self._inventory(decided)
        yield self._demand(decided)
        shortfalls = decided.shortfalls if decided else ShortfallCounts()
        total = self._family("shortfalls")
        total.add_metric([], shortfalls.total)
        yield total
        yield self._split("shortfalls_by_priority", "priority_class", PRIORITY_CLASSES,
                          shortfalls.by_priority)  # fmt: skip
        yield self._split("shortfalls_aged", "bucket", AGE_BUCKETS, shortfalls.by_age)
        yield self._phantoms(decided)
        yield self._spend(decided)
        yield self._transitions(decided)

    def _numbers(self, decided: LastDecision) -> FleetCounts:
        known = self._counted
        if known is None or known[0]() is not decided:
            plan = decided.plan
            counted = count(plan.fleet, plan.demand, decided.policy, decided.now)
            # Weakly: a cycle that is over must not keep its snapshot for the sake of its sums.
            known = self._counted = (weakref.ref(decided), counted)
        return known[1]

    def _inventory(self, decided: LastDecision | None) -> Metric:
        made = self._family(
            "inventory_machines", "state", "capacity_type", "interruption_penalty_bucket"
        )
        machines = self._numbers(decided).machines if decided else np.zeros_like(self._used, int)
        self._used |= machines > 0
        for s, t, b in np.argwhere(self._used).tolist():
            labels = [STATES[s], CAPACITY_TYPES[t], PENALTY_BUCKETS[b]]
            made.add_metric(labels, int(machines[s, t, b]))
        return made

    def _demand(self, decided: LastDecision | None) -> Metric:
        rows = self._numbers(decided).demand.tolist() if decided else [0] * _BUCKETS
        return self._split("demand_machines", "interruption_penalty_bucket", PENALTY_BUCKETS, rows)

    def _phantoms(self, decided: LastDecision | None) -> Metric:
        known = dict.fromkeys(PHANTOMS, 0)
        if decided:
            known |= decided.phantoms
            known["node_not_ready"] = self._numbers(decided).not_ready
        return self._split("phantom_machines", "reason", PHANTOMS, [known[r] for r in PHANTOMS])

    def _spend(self, decided: LastDecision | None) -> Metric:
        made = self._family("spend_dollars_per_hour", "capacity_type", "state")
        spend = self._numbers(decided).spend if decided else np.zeros((len(STATES), _TYPES))
        for s in range(1, len(STATES)):
            for t, kind in enumerate(CAPACITY_TYPES):
                made.add_metric([kind, STATES[s]], float(spend[s, t]))
        return made

    def _transitions(self, decided: LastDecision | None) -> Metric:
        now = self._now()
        oldest = decided.oldest if decided else {}
        ages = [max(0.0, (now - oldest[s]) / _NS) if s in oldest else 0.0 for s in MOVING]
        titles = [state.title for state in MOVING]
        return self._split("transition_age_max_seconds", "state", titles, ages)

    def _family(self, name: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(self._prefix + name, _MEANINGS[name], labels=labels)

    def _split(
        self,
        name: str,
        label: str,
        values: tuple[str, ...] | list[str],
        numbers: tuple[float, ...] | list[int] | list[float],
    ) -> Metric:
        made = self._family(name, label)
        for value, number in zip(values, numbers, strict=True):
            made.add_metric([value], number)
        return made


_MEANINGS: Final = {
    "inventory_machines": "Machines owned.",
    "demand_machines": "Need rows of accepted demand (rows, not machines).",
    "shortfalls": "Unresolved entries of the shortfall ledger.",
    "shortfalls_by_priority": "The same entries by priority class.",
    "shortfalls_aged": "The same entries by age in cycles.",
    "phantom_machines": "Bound machines that give no real capacity.",
    "spend_dollars_per_hour": "Estimated spend.",
    "transition_age_max_seconds": "Age of the oldest machine in that state, 0 if none.",
}
