"""Spend, and the red flags that show avoidable spend or risk.

Spend is the price of every machine that has a host or is getting one. There are
three red flags: work that must not be interrupted runs on machines that can be; idle machines cost
money; a free machine that would serve as well is cheaper than the one in use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.model import CapacityType, MachineState, PenaltyBucket
from bigfleet_dashboard.state.fleetmap import FleetMap
from bigfleet_dashboard.state.machines import CAPACITY, STATES

B = npt.NDArray[np.bool_]
S = MachineState
_FREE: Final = (int(S.SPECULATIVE), int(S.IDLE))
_MOST_EXAMPLES: Final = 8


@dataclass(frozen=True, slots=True)
class Flag:
    """Money or safety lost, in words."""

    kind: str
    title: str
    text: str
    machines: int
    dollars_per_hour: float
    examples: tuple[int, ...]

    def document(self, fleet: FleetMap) -> dict[str, object]:
        """As the API shows it."""
        return {
            "kind": self.kind,
            "title": self.title,
            "text": self.text,
            "machines": self.machines,
            "dollars_per_hour": round(self.dollars_per_hour, 4),
            "examples": [fleet.machine(index) for index in self.examples],
        }


def spending(fleet: FleetMap) -> B:
    """The machines that cost something if they have a price."""
    return np.asarray((fleet.state != S.SPECULATIVE) & (fleet.state != S.FAILED))


def spend_per_hour(fleet: FleetMap) -> float:
    """Dollars per hour of all of them."""
    return float(fleet.price[fleet.cls[spending(fleet)]].sum()) if len(fleet) else 0.0


def cost_document(fleet: FleetMap) -> dict[str, object]:
    """Spend by what it is for, and the red flags."""
    kinds = np.array([c.capacity_type for c in fleet.classes], np.int64)
    by_kind: dict[str, float] = defaultdict(float)
    by_state: dict[str, float] = defaultdict(float)
    by_cluster: dict[str, float] = defaultdict(float)
    table: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    live = np.flatnonzero(spending(fleet))
    prices = fleet.price[fleet.cls[live]]
    bound = fleet.cluster[live] >= 0
    keys = np.stack(
        [
            kinds[fleet.cls[live]] if len(live) else np.zeros(0, np.int64),
            fleet.state[live],
            np.where(bound, fleet.cluster[live], -1),
            np.where(bound, fleet.bucket[live].astype(np.int64), -1),
        ],
        axis=1,
    )
    cells, inverse = np.unique(keys, axis=0, return_inverse=True)
    counts = np.bincount(inverse.reshape(-1), minlength=len(cells))
    sums = np.bincount(inverse.reshape(-1), weights=prices, minlength=len(cells))
    for (kind, state, cluster, bucket), count, dollars in zip(
        cells.tolist(), counts.tolist(), sums.tolist(), strict=True
    ):
        by_kind[CAPACITY[kind]] += dollars
        by_state[STATES[state]] += dollars
        by_cluster[fleet.names.clusters[cluster] if cluster >= 0 else "not bound"] += dollars
        label = bucket_label(bucket) if bucket >= 0 else "not bound"
        table[CAPACITY[kind], label][0] += count
        table[CAPACITY[kind], label][1] += dollars
    return {
        "dollars_per_hour": round(float(sums.sum()), 4),
        "by_capacity_type": _rounded(by_kind),
        "by_state": _rounded(by_state),
        "by_cluster": _rounded(by_cluster),
        "by_capacity_type_and_penalty": [
            {
                "capacity_type": kind,
                "penalty": label,
                "machines": int(count),
                "dollars_per_hour": round(dollars, 4),
            }
            for (kind, label), (count, dollars) in sorted(table.items())
        ],
        "flags": [flag.document(fleet) for flag in flags(fleet)],
    }


def flags(fleet: FleetMap) -> Iterator[Flag]:
    """Red flags, the worst first."""
    if not len(fleet):
        return
    kinds = np.array([c.capacity_type for c in fleet.classes], np.int64)[fleet.cls]
    price = fleet.price[fleet.cls]
    serving = fleet.state == S.CONFIGURED
    pinned = serving & (kinds == CapacityType.SPOT) & (fleet.bucket == PenaltyBucket.PINNED)
    if pinned.any():
        yield _flag(
            "pinned_on_spot", "Pinned demand on spot",
            "Work that must not be interrupted runs on machines that will be. The provider's "
            "interruption probability is probably wrong.", pinned, price,
        )  # fmt: skip
    idle = (fleet.state == S.IDLE) & (price > 0)
    if idle.any():
        yield _flag(
            "idle_money", "Paid idle capacity",
            "Idle machines that cost money. They are given back when their hold is over; a "
            "shorter hold gives them back sooner.", idle, price,
        )  # fmt: skip
    costly, saved = _more_expensive(fleet, serving, price)
    if costly.any():
        yield Flag(
            "more_expensive_than_necessary", "More expensive than necessary",
            "Machines of the same type and zone are free and would cost less, the expected loss by "
            "interruptions included. A need that shrinks gives its most expensive machine back "
            "first.",
            int(costly.sum()), saved, tuple(np.flatnonzero(costly)[:_MOST_EXAMPLES].tolist()),
        )  # fmt: skip


def bucket_label(bucket: int) -> str:
    """A penalty as people read it."""
    if bucket in (PenaltyBucket.UNSPECIFIED, PenaltyBucket.ZERO):
        return "$0"
    label = PenaltyBucket(bucket).label
    return label if label == "pinned" else f"${float(label):,.2f}".removesuffix(".00")


def _flag(kind: str, title: str, text: str, which: B, price: npt.NDArray[np.float64]) -> Flag:
    examples = tuple(np.flatnonzero(which)[:_MOST_EXAMPLES].tolist())
    return Flag(kind, title, text, int(which.sum()), float(price[which].sum()), examples)


def _more_expensive(fleet: FleetMap, serving: B, price: npt.NDArray[np.float64]) -> tuple[B, float]:
    """Machines for which a cheaper one of their type and zone is free; what they waste."""
    classes = fleet.classes
    free_of: dict[tuple[str, str, str], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    free, counts = np.unique(fleet.cls[np.isin(fleet.state, _FREE)], return_counts=True)
    for number, count in zip(free.tolist(), counts.tolist(), strict=True):
        c = classes[number]
        free_of[c.shard, c.zone, c.instance_type][number] += count
    costly, saved = np.zeros(len(fleet), np.bool_), 0.0
    rows = np.flatnonzero(serving & (price > 0))
    for row in rows[np.argsort(-price[rows], kind="stable")].tolist():
        own = classes[int(fleet.cls[row])]
        near = free_of.get((own.shard, own.zone, own.instance_type))
        if not near:
            continue
        dollars = _penalty_dollars(int(fleet.bucket[row]))
        cost = own.price + own.probability * dollars
        best = min(near, key=lambda n: classes[n].price + classes[n].probability * dollars)
        other = classes[best].price + classes[best].probability * dollars
        if other < cost - 1e-9 and near[best] > 0:
            costly[row], saved = True, saved + own.price - classes[best].price
            near[best] -= 1
            if not near[best]:
                del near[best]
    return costly, saved


def _penalty_dollars(bucket: int) -> float:
    found = PenaltyBucket(bucket)
    return 1e12 if found is PenaltyBucket.PINNED else float(found.dollars)


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(amount, 4) for name, amount in sorted(values.items())}
