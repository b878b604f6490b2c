"""Fleets made from a shape: machines in pools and racks, rows of demand, and who holds what.

Every machine belongs to one pool, which has an instance type and a way of paying; machines that a
row holds are Configured in its cluster. Rows are made in `drawn_rows`, shapes drawn in
`fleet_shapes`. Everything comes from the shape's seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import numpy as np

from bigfleet.decision import BackOff, Carry, Policy
from bigfleet.inventory import Inventory
from bigfleet.model import (
    CapacityType,
    HostRef,
    Machine,
    MachineState,
    Need,
    PenaltyBucket,
    Resources,
    Stamp,
    aggregate_rows,
)
from bigfleet.model.columns import Demand, Offering, Symbols
from bigfleet.model.facts import ClusterFacts
from bigfleet.scenario.document import RACK_LABEL, Scenario, machine_id, rack_name
from bigfleet.scenario.state import START, ScenarioState
from bigfleet_lab.simulate.catalogue import TYPES
from bigfleet_lab.simulate.drawn_rows import POOL_LABEL, Pool, RowMaker
from bigfleet_lab.simulate.drawn_taints import DrawnTaints
from bigfleet_lab.simulate.fleet_shapes import FleetShape, Stamps

PROVIDER: Final = "drawn"
REGION: Final = "r"
_SECONDS_OUT: Final = 600
_PAID: Final = tuple(CapacityType)[1:]
S = MachineState


@dataclass(frozen=True)
class DrawnFleet:
    """One fleet with its demand and settings, as values."""

    shape: FleetShape
    machines: list[Machine]
    needs: list[Need]
    facts: dict[str, ClusterFacts]
    policy: Policy
    cooling: frozenset[Offering]

    def carry(self, now: int = START) -> Carry:
        """What the first cycle is handed: offerings that are out of stock."""
        wait = _SECONDS_OUT * 1_000_000_000
        return Carry(stock_outs={o: BackOff(now + wait, wait) for o in sorted(self.cooling)})

    def world(self) -> ScenarioState:
        """The fleet as an engine or a loop takes it."""
        symbols = Symbols()
        inventory = Inventory(symbols)
        inventory.load(self.machines)
        demand = Demand.of(self.needs, self.facts, symbols)
        return ScenarioState(
            Scenario(self.shape.name, (), tuple(self.needs)),
            symbols,
            inventory,
            self.needs,
            demand,
            np.arange(len(self.needs), dtype=np.int64),
            self.policy,
            self.carry(),
        )


def draw_fleet(shape: FleetShape) -> DrawnFleet:
    """The fleet of a shape; the same for the same shape."""
    rng = Random(shape.seed * 7_919 + shape.machines)
    pools = _pools(rng, shape)
    _place(rng, shape, pools)
    rows = RowMaker(shape, pools, rng)
    rows.make()
    taints = DrawnTaints(shape)
    rows.needs = [taints.tolerant(need) for need in rows.needs]
    machines = list(_machines(rng, shape, pools, rows, taints))
    clusters = sorted({need.cluster for need in rows.needs})
    facts = {
        cluster: taints.stated(ClusterFacts(overhead=_overhead(rng, shape))) for cluster in clusters
    }
    offerings = sorted({(m.provider, m.instance_type, m.zone, m.capacity_type) for m in machines})
    cooling = frozenset(o for o in offerings if rng.random() < shape.cooling)
    return DrawnFleet(
        shape, machines, aggregate_rows(rows.needs), facts, _policy(shape, machines), cooling
    )


def _overhead(rng: Random, shape: FleetShape) -> Resources:
    """What DaemonSets take of every node of a cluster."""
    return {"cpu": 300, "memory": 500_000} if shape.overhead and rng.random() < 0.3 else {}


def _policy(shape: FleetShape, machines: list[Machine]) -> Policy:
    """Limits that bind after a third of what is free."""
    outside = sum(m.state is not S.SPECULATIVE for m in machines)
    room = (len(machines) - outside) // 3
    spent = sum(
        m.price_micro
        for m in machines
        if m.state is not S.SPECULATIVE
        and m.capacity_type in (CapacityType.ON_DEMAND, CapacityType.SPOT)
    )
    return Policy(
        reclaim_hold=0,
        quotas={(PROVIDER, REGION): outside + room} if shape.quotas else {},
        spend_limit_micro=spent + room * 500_000 if shape.spend_limit else None,
    )


def _pools(rng: Random, shape: FleetShape) -> list[Pool]:
    types = rng.sample(TYPES, min(shape.types, len(TYPES)))
    pools = []
    for number in range(shape.pools):
        kind, spot = rng.choice(types), rng.random() < shape.spot
        paid = CapacityType.SPOT if spot else rng.choice(_PAID[:3])
        price = {CapacityType.ON_DEMAND: kind.price, CapacityType.SPOT: kind.price * 0.4}.get(
            paid, 0.0
        )
        pools.append(
            Pool(
                name=f"p-{number:03d}",
                type=kind,
                capacity_type=paid,
                price=kind.price if shape.one_price else round(price, 4),
                probability=rng.choice((0.02, 0.05, 0.2)) if spot else 0.0,
            )
        )
    return pools


def _place(rng: Random, shape: FleetShape, pools: list[Pool]) -> None:
    """Give every machine a pool, zone and rack: racks of one pool, or pools mixed in all racks."""
    weights = [rng.choice((1, 1, 2, 5)) for _ in pools]
    owner = rng.choices(pools, weights)[0]
    for index in range(shape.machines):
        rack = index // shape.rack_size
        if shape.mixed_racks or index % shape.rack_size == 0:
            owner = rng.choices(pools, weights)[0]
        owner.add(index, rack % shape.zones, rack)


def _machines(
    rng: Random, shape: FleetShape, pools: list[Pool], rows: RowMaker, drawn: DrawnTaints
) -> Iterator[Machine]:
    stamps = [Stamp.for_need(need, 0) for need in rows.needs]
    labels: dict[tuple[str, int], dict[str, str]] = {}
    for pool in pools:
        taints, more = drawn.of_pool(pool.name)
        for index, zone, rack in pool.machines:
            known = labels.get((pool.name, rack))
            if known is None:
                known = {POOL_LABEL: pool.name, RACK_LABEL: rack_name(rack), **more}
                labels[pool.name, rack] = known
            holder = rows.holders.get(index)
            state, cluster, stamp = S.SPECULATIVE, "", None
            if holder is not None:
                state, cluster = S.CONFIGURED, rows.needs[holder].cluster
                stamp = _remembered(rng, shape, stamps[holder], index)
            elif rng.random() < shape.idle:
                state = S.IDLE
            name = machine_id(index)
            yield Machine(
                id=name,
                state=state,
                host=None if state is S.SPECULATIVE else HostRef(PROVIDER, name),
                provider=PROVIDER,
                region=REGION,
                cluster=cluster,
                instance_type=pool.type.name,
                zone=f"z-{zone}",
                capacity_type=pool.capacity_type,
                labels=known,
                resources=pool.type.allocatable,
                price_per_hour=pool.price,
                interruption_probability=pool.probability,
                stamp=stamp,
                idle_since_ns=START if state is S.IDLE else 0,
                taints=taints,
            )


def _remembered(rng: Random, shape: FleetShape, stamp: Stamp, index: int) -> Stamp | None:
    """The stamp a machine carries of the row that holds it."""
    kind = shape.stamps
    if kind is Stamps.MIXED:
        kind = rng.choice((Stamps.KEPT, Stamps.CHANGED, Stamps.NONE, Stamps.DEAD))
    if kind is Stamps.NONE:
        return None
    if kind is Stamps.CHANGED:
        stamp = replace(stamp, fingerprint="f" * 32, priority=50, reclamation=PenaltyBucket(3))
    elif kind is Stamps.DEAD:
        stamp = replace(stamp, shape="0" * 32, group=f"old-{index % 500}", fingerprint="e" * 32)
    return replace(stamp, sequence=1 + index % 1_000)
