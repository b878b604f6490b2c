"""Columns as the kernels want them: one scale per resource, classes with their costs.

Amounts come as whole units and thousandths. A resource that nobody asks for or offers in fractions
is counted in whole units, any other in thousandths; where even that would not fit 64 bits, whole
units stand, demand rounded up and supply rounded down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bigfleet.decision.carry import Carry
from bigfleet.decision.kernels.layout import I64, Classes
from bigfleet.decision.policy import Policy
from bigfleet.model import CapacityType, PenaltyBucket
from bigfleet.model.columns import ClassTable, Demand, MachineColumns

_MILLI = 1000
_MOST_WHOLE = (1 << 62) // _MILLI
_BUCKETS = len(PenaltyBucket)


@dataclass(frozen=True)
class Amounts:
    """Demand and supply in one scale; ``scale`` is milli-units per counted unit."""

    scale: I64
    aggregate: I64
    unit: I64
    offers: I64
    overhead: I64


def scale_amounts(fleet: MachineColumns, demand: Demand) -> Amounts:
    """Choose a scale per resource and bring everything to it."""
    table = fleet.classes
    numbers = {cluster: fleet.symbols.clusters.of(cluster) for cluster in demand.facts}
    width = max(1, len(fleet.symbols.resources))
    clusters = max(1, len(fleet.symbols.clusters))
    over_whole = np.zeros((clusters, width), np.int64)
    over_milli = np.zeros((clusters, width), np.int64)
    for cluster, facts in demand.facts.items():
        row = numbers[cluster]
        for resource, amount in facts.overhead.items():
            column = fleet.symbols.resources.find(resource)
            over_whole[row, column], over_milli[row, column] = divmod(amount, _MILLI)
    aggregate = _wide(demand.aggregate, width), _wide(demand.aggregate_milli, width)
    unit = _wide(demand.unit, width), _wide(demand.unit_milli, width)
    offers = _wide(table.whole, width), _wide(table.milli, width)
    parts = (aggregate, unit, offers, (over_whole, over_milli))
    fractions = np.any([milli.any(axis=0) for _, milli in parts], axis=0)
    large = np.any([(whole > _MOST_WHOLE).any(axis=0) for whole, _ in parts], axis=0)
    fine = fractions & ~large
    return Amounts(
        scale=np.where(fine, 1, _MILLI).astype(np.int64),
        aggregate=_scaled(*aggregate, fine, round_up=1),
        unit=_scaled(*unit, fine, round_up=1),
        offers=_scaled(*offers, fine, round_up=0),
        overhead=_scaled(over_whole, over_milli, fine, round_up=1),
    )


def _wide(amounts: npt.NDArray[np.integer], width: int) -> I64:
    """Columns for resources that appeared later are zero."""
    if amounts.shape[1] == width:
        return amounts.astype(np.int64, copy=False)
    out = np.zeros((len(amounts), width), np.int64)
    out[:, : amounts.shape[1]] = amounts[:, :width]
    return out


def _scaled(whole: I64, milli: I64, fine: npt.NDArray[np.bool_], *, round_up: int) -> I64:
    if not fine.any() and not milli.any():
        return whole
    coarse = whole + round_up * (milli > 0)
    return np.where(fine, whole * _MILLI + milli, coarse)


def class_columns(
    table: ClassTable, offers: I64, policy: Policy, carry: Carry, now: int
) -> Classes:
    """What the kernels read of classes."""
    cooling, drains = carry.cooling(now), carry.drain_seconds
    out = np.array([o in cooling for o in table.offerings], np.uint8)
    drain = np.array([drains.get(o, 0.0) for o in table.offerings], np.float64)
    elastic = (table.capacity_type == CapacityType.ON_DEMAND) | (
        table.capacity_type == CapacityType.SPOT
    )
    hold = np.full(len(table), -1, np.int64)
    hold[table.capacity_type == CapacityType.SPOT] = policy.spot_release_hold
    hold[table.capacity_type == CapacityType.ON_DEMAND] = policy.on_demand_release_hold
    return Classes(
        offers=np.ascontiguousarray(offers),
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
