"""Columns as the kernels want them: one scale per resource, classes with their costs.

Amounts come as whole units and thousandths. A resource that no need and no machine has in fractions
is counted in whole units, any other in thousandths; where a row, or what all machines offer, would
not fit 64 bits in those, whole units stand, demand rounded up and supply rounded down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bigfleet.decision.carry import Carry
from bigfleet.decision.interning import Memo
from bigfleet.decision.kernels.layout import I32, I64, U8, ClassArrays
from bigfleet.decision.policy import Policy
from bigfleet.model import CapacityType, PenaltyBucket
from bigfleet.model.columns import ClassTable, Demand, MachineColumns, Offering, Symbols
from bigfleet.model.facts import ClusterFacts
from bigfleet.model.match_set import ClusterTerms

Bools = npt.NDArray[np.bool_]

_MILLI = 1000
_MOST_WHOLE = (1 << 62) // _MILLI
_BUCKETS = len(PenaltyBucket)


@dataclass(frozen=True)
class ScaledAmounts:
    """Demand and supply in one scale; ``scale`` is milli-units per counted unit."""

    scale: I64
    aggregate: I64
    unit: I64
    offers: I64
    overhead: I64


@dataclass(frozen=True)
class Clusters:
    """What is known of clusters, as columns over their numbers."""

    reported: U8
    blocked: U8
    overhead: AmountTable
    terms: I32
    """Per cluster: the number of its terms in ``stated``."""
    stated: tuple[ClusterTerms, ...]


@dataclass
class AmountTable:
    """A table of amounts, with which of its resources come in fractions or are very large."""

    whole: I64
    milli: I64
    fractions: Bools
    large: Bools
    _scaled: tuple[bytes, I64] | None = None

    @classmethod
    def of(
        cls, whole: npt.NDArray[np.integer], milli: npt.NDArray[np.integer], width: int
    ) -> AmountTable:
        """Columns for resources that appeared later are zero."""
        units, rest = _wide(whole, width), _wide(milli, width)
        fractions, large = np.any(rest, axis=0), np.any(units > _MOST_WHOLE, axis=0)
        return cls(units, rest, np.atleast_1d(fractions), np.atleast_1d(large))

    def scaled(self, fine: Bools, *, round_up: int) -> I64:
        """The amounts, in thousandths where ``fine``; the same array as long as the scale stays."""
        scale = fine.tobytes()
        if self._scaled is None or self._scaled[0] != scale:
            amounts = self.whole
            if self.fractions.any() or fine.any():
                coarse = self.whole + round_up * (self.milli > 0)
                amounts = np.where(fine, self.whole * _MILLI + self.milli, coarse)
            self._scaled = (scale, np.ascontiguousarray(amounts))
        return self._scaled[1]


@dataclass
class Tables:
    """Makes the tables of a cycle, and keeps those whose making did not change since the last."""

    _facts: Mapping[str, ClusterFacts] = field(default_factory=dict)
    _drains: Mapping[Offering, float] = field(default_factory=dict)
    _clusters: Memo[Clusters] = field(default_factory=Memo)
    _offers: Memo[AmountTable] = field(default_factory=Memo)
    _unit: Memo[AmountTable] = field(default_factory=Memo)
    _classes: Memo[ClassArrays] = field(default_factory=Memo)

    def clusters(self, demand: Demand) -> Clusters:
        """Facts of clusters as columns."""
        symbols = demand.symbols
        if self._facts != demand.facts:
            # A copy: the caller's own mapping may change in place.
            self._facts = dict(demand.facts)
        facts = self._facts
        width = max(1, len(symbols.resources))
        numbers = (len(symbols.clusters), width)
        return self._clusters.get(
            (symbols, facts), numbers, lambda: _cluster_columns(symbols, facts, width)
        )

    def amounts(self, fleet: MachineColumns, demand: Demand, clusters: Clusters) -> ScaledAmounts:
        """Choose a scale per resource and bring everything to it."""
        table, width = fleet.classes, max(1, len(fleet.symbols.resources))
        offers = self._offers.get(
            (table,), (width,), lambda: AmountTable.of(table.whole, table.milli, width)
        )
        unit = self._unit.get(
            (demand.unit, demand.unit_milli), (width,),
            lambda: AmountTable.of(demand.unit, demand.unit_milli, width),
        )  # fmt: skip
        aggregate = AmountTable.of(demand.aggregate, demand.aggregate_milli, width)
        over = clusters.overhead
        fractions = aggregate.fractions | unit.fractions | offers.fractions | over.fractions
        # What many machines offer is added up, per domain: all of it must fit as well.
        most = _MOST_WHOLE // max(1, len(fleet.order))
        together = offers.whole.max(axis=0, initial=0) > most
        large = aggregate.large | unit.large | together | over.large
        fine = fractions & ~large
        return ScaledAmounts(
            scale=np.where(fine, 1, _MILLI).astype(np.int64),
            aggregate=aggregate.scaled(fine, round_up=1),
            unit=unit.scaled(fine, round_up=1),
            offers=offers.scaled(fine, round_up=0),
            overhead=over.scaled(fine, round_up=1),
        )

    def classes(
        self, table: ClassTable, offers: I64, policy: Policy, carry: Carry, now: int
    ) -> ClassArrays:
        """What the kernels read of classes."""
        if self._drains != carry.drain_seconds:
            self._drains = dict(carry.drain_seconds)
        drains, cooling = self._drains, carry.cooling(now)
        plain = (cooling, policy.spot_release_hold, policy.on_demand_release_hold)
        return self._classes.get(
            (table, offers, drains), plain,
            lambda: _class_columns(table, offers, policy, cooling, drains),
        )  # fmt: skip


def _cluster_columns(symbols: Symbols, facts: Mapping[str, ClusterFacts], width: int) -> Clusters:
    numbers = [symbols.clusters.of(cluster) for cluster in facts]
    size = max(1, len(symbols.clusters))
    whole, milli = np.zeros((size, width), np.int64), np.zeros((size, width), np.int64)
    reported, blocked = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    terms, stated = np.zeros(size, np.int32), {ClusterTerms(): 0}
    for row, known in zip(numbers, facts.values(), strict=True):
        reported[row], blocked[row] = known.reported, known.blocked
        terms[row] = stated.setdefault(ClusterTerms.of(known), len(stated))
        for resource, amount in known.overhead.items():
            column = symbols.resources.find(resource)
            whole[row, column], milli[row, column] = divmod(amount, _MILLI)
    return Clusters(reported, blocked, AmountTable.of(whole, milli, width), terms, tuple(stated))


def _wide(amounts: npt.NDArray[np.integer], width: int) -> I64:
    """Columns for resources that appeared later are zero."""
    if amounts.shape[1] == width:
        return amounts.astype(np.int64, copy=False)
    out = np.zeros((len(amounts), width), np.int64)
    out[:, : amounts.shape[1]] = amounts[:, :width]
    return out


def _class_columns(
    table: ClassTable,
    offers: I64,
    policy: Policy,
    cooling: frozenset[Offering],
    drains: Mapping[Offering, float],
) -> ClassArrays:
    out = np.array([o in cooling for o in table.offerings], np.uint8)
    drain = np.array([drains.get(o, -1.0) for o in table.offerings], np.float64)
    elastic = (table.capacity_type == CapacityType.ON_DEMAND) | (
        table.capacity_type == CapacityType.SPOT
    )
    hold = np.full(len(table), -1, np.int64)
    hold[table.capacity_type == CapacityType.SPOT] = policy.spot_release_hold
    hold[table.capacity_type == CapacityType.ON_DEMAND] = policy.on_demand_release_hold
    return ClassArrays(
        offers=offers,
        price=table.price,
        loss=_losses(table),
        risky=(table.probability > 0).astype(np.uint8),
        elastic=elastic.astype(np.uint8),
        cooling=out[table.offering] if len(out) else np.zeros(len(table), np.uint8),
        pool=table.pool,
        hold=hold,
        drain=drain[table.offering] if len(drain) else np.zeros(len(table), np.float64),
    )


def _losses(table: ClassTable) -> I64:
    """[class, bucket]: probability x penalty in whole micro-dollars; -1 where infinite."""
    finite = [b.micro for b in PenaltyBucket if not b.pinned]
    worth = np.array(finite, np.float64)
    losses = np.zeros((len(table), _BUCKETS), np.int64)
    losses[:, : len(finite)] = np.rint(table.probability[:, None] * worth[None, :])
    losses[:, PenaltyBucket.PINNED] = np.where(table.probability > 0, -1, 0)
    return losses
