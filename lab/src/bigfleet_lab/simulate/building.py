"""Building a benchmark's scenario: racks handed out to needs, and what is left over.

A need is made from the machines it should hold: so many whole machines of one type, each of them
taking `per_machine` of its units. So how many machines serve it is known beforehand, and a
benchmark can assert it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from random import Random
from typing import Final

from bigfleet.model import (
    LABEL_INSTANCE_TYPE,
    LABEL_ZONE,
    MachineState,
    Need,
    PenaltyBucket,
    Profile,
    Requirement,
    RequirementOperator,
    Resources,
)
from bigfleet.scenario.document import RACK_LABEL, SHRUNK_AT, MachineRecord, Scenario
from bigfleet_lab.simulate.catalogue import RACK_SIZE, TYPES, ZONES, Rack, racks

CLUSTERS: Final = 200
POOL_LABEL: Final = "pool"
_PENALTIES: Final = (
    PenaltyBucket.UNSPECIFIED,
    PenaltyBucket.ZERO,
    PenaltyBucket.HALF_DOLLAR,
    PenaltyBucket.DOLLARS_2,
    PenaltyBucket.DOLLARS_16,
)
S = MachineState


@dataclass(frozen=True, slots=True)
class Segment:
    """Neighbouring machines of one rack."""

    rack: Rack
    start: int
    count: int


class Scope(IntEnum):
    """What a need says about where it wants to be, besides its type."""

    ZONE = 0
    POOL = 1
    ANYWHERE = 2


class Group:
    """Racks of one type that serve the same needs, and how much of them is handed out.

    A group with a scope is all that its needs can use, and they all say the same about where.
    """

    def __init__(self, racks: list[Rack], scope: Scope | None = None) -> None:
        self.racks = racks
        self.scope = scope
        self._used = [0] * len(racks)
        self._room = [rack.count for rack in racks]

    def __len__(self) -> int:
        return sum(rack.count for rack in self.racks)

    def spare(self, share: float) -> None:
        """Keep so much of every rack back, so that there is some in every zone."""
        self._room = [int(rack.count * (1 - share)) for rack in self.racks]

    def left(self, zone: str | None = None) -> int:
        """How many machines can be handed out."""
        return sum(
            max(0, room - used)
            for rack, room, used in zip(self.racks, self._room, self._used, strict=True)
            if zone in (None, rack.zone)
        )

    def take(self, count: int, zone: str | None = None) -> list[Segment]:
        """Hand out so many machines, rack after rack."""
        taken = []
        for i, rack in enumerate(self.racks):
            if zone not in (None, rack.zone):
                continue
            size = min(count, self._room[i] - self._used[i])
            if size > 0:
                taken.append(self._cut(i, size))
                count -= size
        return taken

    def take_together(self, count: int) -> Segment | None:
        """Hand out so many machines of one rack; None when no rack has them."""
        for i in range(len(self.racks)):
            if self._room[i] - self._used[i] >= count:
                return self._cut(i, count)
        return None

    def _cut(self, i: int, size: int) -> Segment:
        segment = Segment(self.racks[i], self.racks[i].start + self._used[i], size)
        self._used[i] += size
        return segment


class Builder:
    """A scenario in the making. Groups are types in pools, or, separate, of different scopes."""

    def __init__(self, machines: int, seed: int, *, separate: bool = False) -> None:
        self.rng = Random(seed)
        self.needs: list[Need] = []
        self.records: list[MachineRecord] = []
        by_kind: dict[tuple[str, ...], list[Rack]] = {}
        scopes: dict[tuple[str, ...], Scope | None] = {}
        for rack in racks(machines, self.rng):
            scope = Scope(TYPES.index(rack.type) % len(Scope)) if separate else None
            key = _group_key(rack, scope)
            by_kind.setdefault(key, []).append(rack)
            scopes[key] = scope
        self.groups = [Group(by_kind[key], scopes[key]) for key in sorted(by_kind)]
        self._profiles: dict[Profile, Profile] = {}
        self._rows: set[tuple[str, str, str]] = set()

    def cluster(self, first: int = 0, last: int = CLUSTERS - 1) -> str:
        """Any cluster of a range."""
        return f"c-{self.rng.randint(first, last):03d}"

    def shares(self, needs: int, spare: float) -> Iterator[tuple[Group, int]]:
        """Split a number of needs over the groups by their size: a group and machines for each."""
        for group, count in self.split(needs):
            group.spare(spare)
            for size in parts(group.left(), count):
                yield group, size

    def split(self, needs: int) -> Iterator[tuple[Group, int]]:
        """How many of so many needs fall to each group."""
        total = sum(len(group) for group in self.groups)
        given = 0.0
        for group in self.groups:
            before, given = round(given), given + needs * len(group) / total
            yield group, min(round(given) - before, len(group))

    def need(
        self,
        rack: Rack,
        aggregate: Resources,
        unit: Resources,
        *,
        priority: int,
        cluster: str,
        pool: bool = True,
        zone: str | None = None,
        together: bool = False,
        group: str = "",
    ) -> int:
        """Add a need for machines like those of a rack; its number."""
        requirements = [
            Requirement.of(LABEL_INSTANCE_TYPE, RequirementOperator.IN, [rack.type.name])
        ]
        if pool:
            requirements.append(Requirement.of(POOL_LABEL, RequirementOperator.IN, [rack.pool]))
        if zone is not None:
            requirements.append(Requirement.of(LABEL_ZONE, RequirementOperator.IN, [zone]))
        if together:
            requirements.append(Requirement.of(RACK_LABEL, RequirementOperator.SAME))
        # Rows that are alike but for their penalty are told apart by it; where a group tells them
        # apart, equal penalties let rows share a profile, as replicas of one job do.
        pick = 1 if group else len(self.needs)
        profile = Profile.of(
            requirements,
            priority=priority,
            interruption=_PENALTIES[pick % len(_PENALTIES)],
            reclamation=_PENALTIES[pick // len(_PENALTIES) % len(_PENALTIES)],
        )
        profile = self._profiles.setdefault(profile, profile)
        # Equal rows would be added up at ingest, and their machines no longer be known beforehand.
        if (cluster, profile.fingerprint, group) in self._rows:
            group = f"w-{len(self.needs):06d}"
        self._rows.add((cluster, profile.fingerprint, group))
        self.needs.append(
            Need(
                cluster=cluster,
                profile=profile,
                aggregate=aggregate,
                min_unit=unit,
                group=group,
                arrival_ns=len(self.needs) + 1,
                shrunk_at=SHRUNK_AT,
            )
        )
        return len(self.needs) - 1

    def bind(self, segments: Iterable[Segment], need: int) -> None:
        """Configured machines that serve a need."""
        for segment in segments:
            self._record(segment, S.CONFIGURED, self.needs[need].cluster, need)

    def leave(self, segments: Iterable[Segment]) -> None:
        """Machines of no one: owned ones Idle, most elastic ones not there yet."""
        for segment in segments:
            idle = not segment.rack.elastic or self.rng.random() < 0.3
            self._record(segment, S.IDLE if idle else S.SPECULATIVE, "", None)

    def scenario(self, name: str) -> Scenario:
        """What was built; machines no one was given are left."""
        for group in self.groups:
            group.spare(0.0)
            self.leave(group.take(group.left()))
        records = sorted(self.records, key=lambda record: record.start)
        return Scenario(name, tuple(records), tuple(self.needs))

    def _record(
        self, segment: Segment, state: MachineState, cluster: str, need: int | None
    ) -> None:
        rack = segment.rack
        self.records.append(
            MachineRecord(
                start=segment.start,
                count=segment.count,
                instance_type=rack.type.name,
                zones=ZONES,
                rack_size=RACK_SIZE,
                labels={POOL_LABEL: rack.pool},
                capacity_type=rack.capacity_type,
                price=rack.price,
                interruption_probability=rack.interruption_probability,
                allocatable=rack.type.allocatable,
                state=state,
                cluster=cluster,
                assigned_need=need,
            )
        )


def _group_key(rack: Rack, scope: Scope | None) -> tuple[str, ...]:
    match scope:
        case Scope.ZONE:
            return (rack.type.name, rack.pool, rack.zone)
        case Scope.ANYWHERE:
            return (rack.type.name,)
        case _:
            return (rack.type.name, rack.pool)


def parts(total: int, count: int) -> Iterator[int]:
    """So many parts of a number, as equal as they can be; at least one each."""
    for i in range(count):
        yield max(1, total * (i + 1) // count - total * i // count)


def share_of(offer: Resources, parts: int) -> dict[str, int]:
    """A machine's offer cut into equal whole parts."""
    return {
        name: amount // 1000 // parts * 1000 or amount // parts for name, amount in offer.items()
    }


def times(unit: Resources, count: int) -> dict[str, int]:
    """So many units."""
    return {name: amount * count for name, amount in unit.items()}
