"""The work budget: which clusters a cycle leaves out, so that one cannot cost the others.

Before anything is decided every cluster is weighed by counts alone: its rows, the different sets of
requirements among them, the kinds of machines in the fleet (provider, type, zone, capacity type)
and the machines it has. While the
weights together exceed `Policy.max_work`, the heaviest cluster (of equal ones the smaller id) is
frozen: it is treated as one that has not reported, so it keeps its machines and gets none, and its
rows are shown as FROZEN. Nothing here measures time, so the same input freezes the same clusters on
every machine. Clusters that the caller names (`Policy.frozen`, the shard's watchdog) come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from bigfleet.decision.policy import Policy
from bigfleet.model.columns import Demand, MachineColumns

ROW_WORK = 64
"""What a row costs by itself, in units of looking once at a kind for one set of requirements."""
MACHINES_PER_UNIT = 1024
"""A row costs one unit more for each of so many machines of its cluster."""


def cluster_work(rows: int, requirement_sets: int, kinds: int, machines: int) -> int:
    """The weight of one cluster."""
    return (
        ROW_WORK * rows + requirement_sets * kinds + rows * machines // MACHINES_PER_UNIT + machines
    )


def heaviest_first(weights: Mapping[str, int]) -> list[str]:
    """Clusters in the order in which they are frozen."""
    return sorted(weights, key=lambda cluster: (-weights[cluster], cluster))


def frozen_by_work(weights: Mapping[str, int], most: int) -> frozenset[str]:
    """The clusters that are left out so that the rest is within the budget."""
    frozen: set[str] = set()
    total = sum(weights.values())
    for cluster in heaviest_first(weights):
        if total <= most:
            break
        frozen.add(cluster)
        total -= weights[cluster]
    return frozenset(frozen)


def weights_of(fleet: MachineColumns, demand: Demand) -> dict[str, int]:
    """The weight of every cluster that asks for something."""
    symbols = demand.symbols
    cluster = symbols.identity_column("cluster")[demand.identity]
    size = len(symbols.clusters)
    rows = np.bincount(cluster, minlength=size)
    owner = fleet.cluster[fleet.order]
    machines = np.bincount(owner[owner >= 0], minlength=size)
    pairs = np.unique(np.stack([cluster, demand.profile.astype(np.int64)]), axis=1)
    shapes = {
        (number, symbols.profiles[profile].shape_fingerprint)
        for number, profile in pairs.T.tolist()
    }
    sets = np.bincount([number for number, _ in shapes], minlength=size)
    present = np.unique(fleet.cls[fleet.order])
    kinds = len(np.unique(fleet.classes.offering[present]))
    return {
        symbols.clusters[number]: cluster_work(
            int(rows[number]), int(sets[number]), kinds, int(machines[number])
        )
        for number in np.flatnonzero(rows).tolist()
    }


@dataclass(frozen=True, eq=False)
class Share:
    """The demand of a cycle, divided."""

    decided: Demand
    frozen: frozenset[str] = frozenset()
    """Clusters that are left out."""
    withheld: Demand | None = None
    """Their rows; None where there are none."""


@dataclass
class WorkBudget:
    """Divides the demand, and keeps the division while demand and frozen clusters are the same."""

    _of: tuple[Demand, frozenset[str]] | None = None
    _share: Share = field(init=False)

    def divide(self, fleet: MachineColumns, demand: Demand, policy: Policy) -> Share:
        """What is decided in this cycle and what is not."""
        frozen = policy.frozen & demand.facts.keys()
        if not _surely_fits(fleet, demand, policy.max_work):
            weights = weights_of(fleet, demand)
            left = {cluster: work for cluster, work in weights.items() if cluster not in frozen}
            frozen |= frozen_by_work(left, policy.max_work)
        if not frozen:
            self._of = None
            return Share(demand)
        if self._of is None or self._of[0] is not demand or self._of[1] != frozen:
            self._share = _divided(demand, frozen)
            self._of = (demand, frozen)
        return self._share


def _surely_fits(fleet: MachineColumns, demand: Demand, most: int) -> bool:
    """Whether the weights stay within the budget even if one cluster had everything."""
    rows, machines = len(demand), len(fleet)
    return cluster_work(rows, rows, len(fleet.classes), machines) <= most


def _divided(demand: Demand, frozen: frozenset[str]) -> Share:
    numbers = [demand.symbols.clusters.find(cluster) for cluster in frozen]
    clusters = demand.symbols.identity_column("cluster")[demand.identity]
    withheld = np.isin(clusters, numbers)
    facts = {
        cluster: replace(fact, reported=False) if cluster in frozen else fact
        for cluster, fact in demand.facts.items()
    }
    decided = replace(_rows(demand, ~withheld), facts=facts)
    return Share(decided, frozen, _rows(demand, withheld) if withheld.any() else None)


def _rows(demand: Demand, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Demand:
    return replace(
        demand,
        identity=demand.identity[chosen],
        profile=demand.profile[chosen],
        arrival=demand.arrival[chosen],
        shrunk_at=demand.shrunk_at[chosen],
        aggregate=demand.aggregate[chosen],
        aggregate_milli=demand.aggregate_milli[chosen],
        unit=demand.unit[chosen],
        unit_milli=demand.unit_milli[chosen],
        keys=object(),
    )
