"""Pools of machines and rows of demand of a drawn fleet.

A pool hands out its machines by zone and rack. A row is made for one pool, may accept others, and
takes the machines that it holds already from those it accepts. What machines become of this is in
`drawn_fleets`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from bigfleet.model import (
    LABEL_CAPACITY_TYPE,
    LABEL_INSTANCE_TYPE,
    LABEL_ZONE,
    CapacityType,
    Need,
    PenaltyBucket,
    Profile,
    Requirement,
    RequirementOperator,
    Resources,
    Spread,
    SpreadMode,
)
from bigfleet.scenario.document import RACK_LABEL, SHRUNK_AT, rack_name
from bigfleet_lab.simulate.catalogue import InstanceType
from bigfleet_lab.simulate.fleet_shapes import FleetShape

POOL_LABEL: Final = "pool"
_PENALTIES: Final = tuple(PenaltyBucket(n) for n in (0, 1, 2, 4, 8, 14))
_PARTS: Final = (1, 1, 2, 3, 4, 8)


@dataclass
class Pool:
    """Machines of one type and way of paying, as (index, zone, rack) in the order of indices."""

    name: str
    type: InstanceType
    capacity_type: CapacityType
    price: float
    probability: float
    machines: list[tuple[int, int, int]] = field(default_factory=list)
    by_zone: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    """Machines not handed out yet."""

    def add(self, index: int, zone: int, rack: int) -> None:
        """One more machine."""
        self.machines.append((index, zone, rack))
        self.by_zone.setdefault(zone, []).append((index, zone, rack))

    def take(self, count: int, zone: int | None, *, together: bool) -> list[int]:
        """Up to so many machines; ``together`` in one rack, all or none."""
        found: list[int] = []
        for number in [zone] if zone is not None else sorted(self.by_zone):
            free = self.by_zone.get(number, [])
            if together:
                last = free[-count:]
                if len(last) == count and len({rack for _, _, rack in last}) == 1:
                    del free[-count:]
                    return [index for index, _, _ in last]
                continue
            while free and len(found) < count:
                found.append(free.pop()[0])
        return [] if together else found


@dataclass
class RowMaker:
    """Makes rows for the pools of a shape, and says which machines they hold."""

    shape: FleetShape
    pools: Sequence[Pool]
    rng: Random
    needs: list[Need] = field(default_factory=list)
    holders: dict[int, int] = field(default_factory=dict)
    """Machine index -> index of the row that holds it."""

    def __post_init__(self) -> None:
        shape, rng = self.shape, self.rng
        weights = [2.0 ** (-shape.skew * i) + 0.002 for i in range(shape.clusters)]
        self._clusters = [f"c-{i:03d}" for i in range(shape.clusters)]
        self._weights = weights
        self._levels = sorted(rng.sample(range(0, 2_000_000, 10), shape.priorities))
        self._profiles: list[tuple[Pool, Profile, int | None]] = []
        self._budget = shape.machines * shape.demand

    def make(self) -> None:
        """All rows; the last ones are those that hold the least."""
        shape = self.shape
        if shape.everything:
            self._row(self.rng.choice(self.pools), size=max(1, shape.machines // 3), wide=True)
        while len(self.needs) < shape.needs:
            self._row(self.rng.choice(self.pools), self._size())

    def _size(self) -> int:
        """Machines for the next row: the rest of the demand divided by the rows left, roughly."""
        left = self.shape.needs - len(self.needs)
        even = max(0.0, self._budget) / max(1, left)
        size = even * self.rng.choice((0.1, 0.3, 0.5, 1.0, 1.0, 2.0, 4.0))
        return max(1, round(size))

    def _row(self, pool: Pool, size: int, *, wide: bool = False) -> None:
        shape, rng = self.shape, self.rng
        gang = not wide and rng.random() < shape.gangs
        zone: int | None
        if self._profiles and (shape.shared_profiles or gang) and rng.random() < 0.7 and not wide:
            pool, profile, zone = rng.choice(self._profiles[-50:])
            gang = bool(profile.same)
        else:
            profile, zone = self._profile(pool, gang=gang, wide=wide)
            self._profiles.append((pool, profile, zone))
        if gang:
            size = min(size, rng.randint(1, max(1, min(16, shape.rack_size // 2))))
        unit = self._unit(pool)
        per_machine = min(pool.type.allocatable[d] // v for d, v in unit.items())
        units = size * per_machine
        if rng.random() < shape.tiny:
            size, units = 1, rng.randint(1, max(1, per_machine))
        elif per_machine > 1 and rng.random() < 0.5:
            units = max(1, units - rng.randrange(per_machine))
        self._budget -= size
        number = len(self.needs)
        shrunk_at = 0
        held = self._hold(pool, size, zone, together=gang)
        if rng.random() < shape.changed:
            units = max(1, round(units * rng.choice((0.2, 0.5, 0.9, 1.1, 1.5))))
            shrunk_at = rng.choice((0, SHRUNK_AT))
        aggregate = {d: v * units for d, v in unit.items()}
        if rng.random() < 0.1:
            aggregate["cpu"] += unit["cpu"] // 3
        self.needs.append(
            Need(
                cluster=rng.choices(self._clusters, self._weights)[0],
                profile=profile,
                aggregate=aggregate,
                min_unit=unit,
                group=f"g-{number:06d}" if gang or rng.random() < 0.2 else "",
                size_class=rng.choice(("", "", "", "s")),
                arrival_ns=rng.randint(1, 1_000),
                shrunk_at=shrunk_at,
            )
        )
        for index in held:
            self.holders[index] = number

    def _hold(self, pool: Pool, size: int, zone: int | None, *, together: bool) -> list[int]:
        if self.rng.random() >= self.shape.bound:
            return []
        return pool.take(size, zone, together=together)

    def _unit(self, pool: Pool) -> Resources:
        """One pod: a part of a machine, or one that leaves some memory over."""
        parts, given = self.rng.choice(_PARTS), pool.type.allocatable
        unit = {d: max(1, v // parts // 1000) * 1000 for d, v in given.items()}
        if self.rng.random() < 0.3:
            unit["memory"] = max(1000, unit["memory"] // 2 // 1000 * 1000)
        if "nvidia.com/gpu" in unit and (self.rng.random() < 0.3 or given["nvidia.com/gpu"] < 2000):
            del unit["nvidia.com/gpu"]
        return unit

    def _profile(self, pool: Pool, *, gang: bool, wide: bool) -> tuple[Profile, int | None]:
        shape, rng = self.shape, self.rng
        requirements = [] if wide else self._where(pool)
        zone: int | None = None
        if not wide and rng.random() < shape.by_zone and pool.by_zone:
            zone = rng.choice(sorted(pool.by_zone))
            requirements.append(Requirement.of(LABEL_ZONE, RequirementOperator.IN, [f"z-{zone}"]))
        if rng.random() < shape.by_rack:
            racks = max(1, shape.machines // shape.rack_size)
            shunned = [rack_name(rng.randrange(racks))]
            requirements.append(Requirement.of(RACK_LABEL, RequirementOperator.NOT_IN, shunned))
        if gang:
            key = RACK_LABEL if rng.random() < 0.8 else LABEL_ZONE
            requirements.append(Requirement.of(key, RequirementOperator.SAME))
        return Profile.of(
            requirements,
            [] if gang or rng.random() >= shape.spread else self._spreads(),
            rng.choice(self._levels),
            self._penalty(),
            self._penalty(),
        ), zone

    def _where(self, pool: Pool) -> list[Requirement]:
        """Which pools or types the row accepts; always the one it is made for."""
        shape, rng = self.shape, self.rng
        draw = rng.random()
        if draw < shape.anywhere:
            if rng.random() < 0.5:
                return []
            kinds = sorted({p.capacity_type.label for p in rng.choices(self.pools, k=2)})
            kinds = sorted({*kinds, pool.capacity_type.label})
            return [Requirement.of(LABEL_CAPACITY_TYPE, RequirementOperator.IN, kinds)]
        if draw < shape.anywhere + shape.several_types:
            names = {p.type.name for p in rng.choices(self.pools, k=rng.randint(1, 3))}
            return [
                Requirement.of(
                    LABEL_INSTANCE_TYPE, RequirementOperator.IN, {pool.type.name, *names}
                )
            ]
        names = {pool.name}
        if rng.random() < shape.several_pools:
            names |= {p.name for p in rng.choices(self.pools, k=rng.randint(1, 4))}
        return [Requirement.of(POOL_LABEL, RequirementOperator.IN, names)]

    def _spreads(self) -> list[Spread]:
        """One constraint, or one over zones and one over racks."""
        rng, shape = self.rng, self.shape
        key = RACK_LABEL if rng.random() < shape.spread_racks else LABEL_ZONE
        first = self._spread(key)
        if shape.two_spreads == 0.0 or rng.random() >= shape.two_spreads:
            return [first]
        return [first, self._spread(LABEL_ZONE if key == RACK_LABEL else RACK_LABEL)]

    def _spread(self, key: str) -> Spread:
        rng, shape = self.rng, self.shape
        soft = rng.random() < shape.soft_spread
        mode = SpreadMode.SCHEDULE_ANYWAY if soft else SpreadMode.DO_NOT_SCHEDULE
        return Spread(key, rng.randint(1, 3), mode)

    def _penalty(self) -> PenaltyBucket:
        if self.rng.random() < self.shape.pinned:
            return PenaltyBucket.PINNED
        if self.rng.random() < self.shape.penalties:
            return self.rng.choice(_PENALTIES)
        return PenaltyBucket.UNSPECIFIED
