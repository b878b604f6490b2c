"""Shapes of fleets: how many pools, racks, clusters and rows there are, and what the rows ask for.

A shape is a handful of numbers drawn from a seed, wide on purpose: fleets without a design. The
machines and rows of a shape are made in `drawn_fleets`. Tests draw small fleets from here,
benchmarks large ones; a finding is always a seed and a size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from random import Random
from typing import Final

MOST_CLUSTERS: Final = 240


class Stamps(IntEnum):
    """What bound machines remember of the rows they were taken for."""

    KEPT = 0
    """The row as it is now: a shard that was restarted."""
    CHANGED = 1
    """The row under another priority and penalty: every profile was changed."""
    NONE = 2
    """Nothing: a fleet that was adopted."""
    DEAD = 3
    """Rows that are gone: every workload was renamed."""
    MIXED = 4


@dataclass(frozen=True, slots=True)
class FleetShape:
    """The numbers a fleet is made from. Shares are between 0 and 1."""

    seed: int
    machines: int
    needs: int
    types: int = 2
    pools: int = 4
    rack_size: int = 50
    zones: int = 3
    clusters: int = 10
    skew: float = 0.0
    """0: all clusters alike; 1: the first has about half of all rows, the second a quarter."""
    mixed_racks: bool = False
    bound: float = 0.5
    """The share of machines that serve a row already."""
    idle: float = 0.3
    """The share of the other machines that are Idle; the rest is Speculative."""
    stamps: Stamps = Stamps.KEPT
    demand: float = 0.7
    """What all rows ask for together, as a share of what all machines offer."""
    changed: float = 0.0
    """The share of rows that ask for something else than they hold."""
    gangs: float = 0.0
    several_pools: float = 0.3
    several_types: float = 0.2
    anywhere: float = 0.1
    by_zone: float = 0.2
    by_rack: float = 0.0
    """The share of rows that exclude a rack."""
    spread: float = 0.0
    spread_racks: float = 0.3
    """Of the rows that spread: the share that spread over racks and not over zones."""
    soft_spread: float = 0.3
    """Of the rows that spread: the share with ScheduleAnyway."""
    two_spreads: float = 0.0
    """Of the rows that spread: the share with a constraint over zones and another over racks."""
    tiny: float = 0.0
    """The share of rows that ask for a small part of one machine."""
    everything: bool = False
    """One row asks for as much as a third of the fleet, from anywhere."""
    shared_profiles: bool = False
    """Rows of different clusters have the same profiles."""
    priorities: int = 3
    penalties: float = 0.5
    pinned: float = 0.05
    spot: float = 0.2
    one_price: bool = False
    """All capacity types have the same price."""
    quotas: bool = False
    spend_limit: bool = False
    cooling: float = 0.0
    overhead: bool = False
    tainted: float = 0.0
    """The share of pools with taints."""
    arm: float = 0.0
    """The share of pools with another architecture than most."""
    tolerant: float = 0.0
    """The share of rows with tolerations."""
    stated: float = 0.0
    """The share of clusters that state their tolerations; as many have a default architecture."""

    @property
    def name(self) -> str:
        """What a finding is called."""
        return f"seed {self.seed} ({self.machines} machines, {self.needs} rows)"


def draw_shape(seed: int, machines: int, most_needs: int) -> FleetShape:
    """The shape of a seed at a size: up to so many rows."""
    rng = Random(seed)
    needs = _log(rng, max(1, most_needs // 20), most_needs)
    shape = FleetShape(
        seed=seed,
        machines=machines,
        needs=needs,
        types=rng.randint(1, 8),
        pools=_log(rng, 1, max(1, min(200, machines // 4))),
        rack_size=min(rng.choice((8, 16, 32, 50, 100, 200)), max(2, machines // 4)),
        zones=rng.randint(1, 4),
        clusters=_clusters(rng, needs),
        skew=rng.choice((0.0, 0.0, 0.5, 1.0)),
        mixed_racks=rng.random() < 0.2,
        bound=rng.choice((0.0, rng.random() * 0.9, rng.random() * 0.9, 0.9)),
        idle=rng.choice((0.0, 0.2, 0.5, 1.0)),
        stamps=rng.choice((Stamps.KEPT, Stamps.KEPT, *Stamps)),
        demand=rng.choice((0.3, 0.6, 0.8, 0.95, 1.2)),
        changed=rng.choice((0.0, 0.0, 0.03, 0.3, 1.0)),
    )
    shape = _with_taints(Random(seed + 1_000_003), _with_rows(rng, shape))
    return replace(shape, two_spreads=Random(seed + 2_000_003).choice((0.0, 0.0, 0.3, 1.0)))


def _with_rows(rng: Random, shape: FleetShape) -> FleetShape:
    def some(share: float, most: float) -> float:
        return rng.random() * most if rng.random() < share else 0.0

    return replace(
        shape,
        gangs=some(0.5, 0.6),
        several_pools=rng.random() * 0.6,
        several_types=rng.random() * 0.4,
        anywhere=some(0.5, 0.4),
        by_zone=some(0.6, 0.5),
        by_rack=some(0.1, 0.2),
        spread=some(0.5, 0.5),
        spread_racks=rng.choice((0.0, 0.2, 0.5)),
        soft_spread=rng.choice((0.0, 0.3, 1.0)),
        tiny=rng.choice((0.0, 0.0, 0.3, 0.9)),
        everything=rng.random() < 0.1,
        shared_profiles=rng.random() < 0.3,
        priorities=rng.choice((1, 2, 4, 20)),
        penalties=rng.random(),
        pinned=some(0.5, 0.2),
        spot=some(0.7, 0.6),
        one_price=rng.random() < 0.2,
        quotas=rng.random() < 0.1,
        spend_limit=rng.random() < 0.1,
        cooling=some(0.2, 0.3),
        overhead=rng.random() < 0.2,
    )


def _with_taints(rng: Random, shape: FleetShape) -> FleetShape:
    """Apart from everything else that is drawn: most shapes have no taints."""
    if rng.random() < 0.6:
        return shape
    return replace(
        shape,
        tainted=rng.choice((0.2, 0.5, 1.0)),
        arm=rng.choice((0.0, 0.0, 0.3)),
        tolerant=rng.choice((0.3, 0.7, 1.0)),
        stated=rng.choice((0.5, 1.0, 1.0)),
    )


def one_cluster(seed: int, machines: int, needs: int) -> FleetShape:
    """A drawn shape in which one cluster has every row and every machine that is bound."""
    shape = draw_shape(seed, machines, needs)
    return replace(shape, clusters=1, skew=0.0, needs=needs, bound=max(shape.bound, 0.5))


def without_limits(shape: FleetShape) -> FleetShape:
    """The shape without quotas, spend limit and stock-outs."""
    return replace(shape, quotas=False, spend_limit=False, cooling=0.0)


def _clusters(rng: Random, needs: int) -> int:
    kind = rng.random()
    if kind < 0.25:
        return 1
    if kind < 0.5:
        return min(needs, rng.randint(2, 6))
    return max(1, min(needs, _log(rng, 7, MOST_CLUSTERS)))


def _log(rng: Random, least: int, most: int) -> int:
    """A whole number whose magnitude is evenly drawn."""
    if most <= least:
        return least
    return min(most, int(least * (most / least + 1e-9) ** rng.random()))
