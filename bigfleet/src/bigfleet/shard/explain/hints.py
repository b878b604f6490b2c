"""Hints at how much capacity a cluster's profiles could have: advisory, and cheap.

Matching looks at the pinned instance type alone, so machines are counted once per type and cycle,
and each profile's answer is a sum over its types. What a cluster was told last is kept in columns
over (cluster, profile); only what changed, and not within the last seconds, becomes a frame.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.model import LABEL_INSTANCE_TYPE, MachineState, Profile, RequirementOperator
from bigfleet.model.columns import UNAVAILABLE, Demand, MachineColumns, Symbols
from bigfleet.wire.needs import requirements_to_proto
from bigfleet_api.v1alpha1 import shard_pb2 as pb

B = npt.NDArray[np.bool_]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
S = MachineState

SPACING_NS: Final = 5 * 10**9
MOST_PER_CYCLE: Final = 1_000
"""Frames of one cycle: up to 20 ms. What is left over comes with the next."""
_NEVER: Final = -(2**62)
_Confidence = pb.AvailableCapacityUpdate
_INT32_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Hint:
    """A frame for one cluster."""

    cluster: str
    key: str
    """What it takes the place of in an outbox."""
    message: pb.ShardMessage


@dataclass(frozen=True)
class _Supply:
    """Per profile: what is to be had."""

    count: I64
    confidence: I64
    cost: F64


@dataclass(frozen=True)
class _Sums:
    """Per demanded profile, the types whose machines count for it."""

    keys: object
    types: dict[str, int]
    profile: I64
    places: I64
    """Places of types; one more stands for all types together, another for none."""
    starts: I64
    """Per profile, where its places begin."""
    pinned: B


@dataclass
class _SentHints:
    """What was said last, over the pairs of one set of rows."""

    keys: object
    cluster: I64
    profile: I64
    count: I64
    confidence: I64
    cost: F64
    at: I64

    @classmethod
    def of(cls, demand: Demand) -> _SentHints:
        """The pairs of a demand, told nothing yet; sorted by cluster, then profile."""
        cluster = demand.symbols.identity_column("cluster")[demand.identity]
        pairs = np.unique((cluster << 32) | demand.profile)
        size = len(pairs)
        return cls(
            keys=demand.keys,
            cluster=pairs >> 32,
            profile=pairs & 0xFFFFFFFF,
            count=np.zeros(size, np.int64),
            confidence=np.zeros(size, np.int64),
            cost=np.zeros(size, np.float64),
            at=np.full(size, _NEVER, np.int64),
        )

    def inherit(self, old: _SentHints) -> None:
        """Take over what was told of pairs that are still there."""
        mine = (self.cluster << 32) | self.profile
        theirs = (old.cluster << 32) | old.profile
        place = np.searchsorted(theirs, mine)
        place[place == len(theirs)] = 0
        same = theirs[place] == mine if len(theirs) else np.zeros(len(mine), np.bool_)
        for name in ("count", "confidence", "cost", "at"):
            getattr(self, name)[same] = getattr(old, name)[place[same]]


class Hints:
    """What clusters were told, and what they are told now."""

    def __init__(self, spacing_ns: int = SPACING_NS, most: int = MOST_PER_CYCLE) -> None:
        self._spacing = spacing_ns
        self._most = most
        self._sent: _SentHints | None = None
        self._symbols: Symbols | None = None
        self._pins: list[tuple[str, ...] | None] = []
        self._sums: _Sums | None = None

    def forget(self, cluster: str) -> None:
        """A session ended: the next one is told everything."""
        sent = self._sent
        if sent is not None and self._symbols is not None:
            number = self._symbols.clusters.find(cluster)
            sent.at[sent.cluster == number] = _NEVER
            sent.confidence[sent.cluster == number] = 0

    def updates(
        self, fleet: MachineColumns, demand: Demand, connected: Collection[str], now: int
    ) -> Iterator[Hint]:
        """Frames for clusters with a session; each counts as told when it is handed out."""
        sent = self._follow(demand)
        supply = self._supply(fleet, demand)
        count, confidence = supply.count[sent.profile], supply.confidence[sent.profile]
        cost = supply.cost[sent.profile]
        due: B = ((count != sent.count) | (confidence != sent.confidence) | (cost != sent.cost)) & (
            now - sent.at >= self._spacing
        )
        names = demand.symbols.clusters
        listening = np.zeros(len(names), np.bool_)
        listening[[n for n in map(names.find, connected) if n >= 0]] = True
        due &= listening[sent.cluster]
        # Those who waited longest first, so that a limit starves no cluster.
        pairs = np.flatnonzero(due)
        pairs = pairs[np.argsort(sent.at[pairs], kind="stable")][: self._most]
        sent.count[pairs], sent.confidence[pairs] = count[pairs], confidence[pairs]
        sent.cost[pairs], sent.at[pairs] = cost[pairs], now
        messages: dict[int, tuple[str, pb.ShardMessage]] = {}
        for pair in pairs.tolist():
            profile = int(sent.profile[pair])
            if profile not in messages:
                messages[profile] = _message(
                    demand.symbols.profiles[profile],
                    int(count[pair]),
                    int(confidence[pair]),
                    float(cost[pair]),
                )
            key, message = messages[profile]
            yield Hint(names[int(sent.cluster[pair])], key, message)

    def _follow(self, demand: Demand) -> _SentHints:
        sent = self._sent
        if self._symbols is not demand.symbols:
            sent, self._pins, self._sums, self._symbols = None, [], None, demand.symbols
        if sent is None or sent.keys is not demand.keys:
            fresh = _SentHints.of(demand)
            if sent is not None:
                fresh.inherit(sent)
            sent = self._sent = fresh
        for profile in demand.symbols.profiles[len(self._pins) :]:
            self._pins.append(pinned_types(profile))
        return sent

    def _supply(self, fleet: MachineColumns, demand: Demand) -> _Supply:
        types, idle, speculative, cheapest = _by_type(fleet)
        sums = self._sums_over(types, demand)
        size = len(self._pins)
        count, confidence = np.zeros(size, np.int64), np.zeros(size, np.int64)
        cost = np.zeros(size, np.float64)
        if len(sums.profile):
            free = np.add.reduceat(idle[sums.places], sums.starts)
            to_be = np.add.reduceat(speculative[sums.places], sums.starts)
            price = np.minimum.reduceat(cheapest[sums.places], sums.starts)
            count[sums.profile] = np.minimum(free + to_be, _INT32_MAX)
            confidence[sums.profile] = np.select(
                [free > 0, to_be > 0],
                [_Confidence.CONFIDENCE_HIGH, _Confidence.CONFIDENCE_MEDIUM],
                _Confidence.CONFIDENCE_NONE,
            )
            cost[sums.profile] = np.where(sums.pinned & np.isfinite(price), price, 0.0)
        return _Supply(count, confidence, cost)

    def _sums_over(self, types: dict[str, int], demand: Demand) -> _Sums:
        """Which types each demanded profile adds up; the same as long as both stay the same."""
        known = self._sums
        if known is not None and known.keys is demand.keys and known.types == types:
            return known
        profile = np.unique(demand.profile).astype(np.int64)
        everything, nothing = len(types), len(types) + 1
        places: list[int] = []
        starts: list[int] = []
        for number in profile.tolist():
            starts.append(len(places))
            pins = self._pins[number]
            if pins is None:
                places.append(everything)
            else:
                places.extend({types.get(name, nothing) for name in pins} or {nothing})
        pinned = np.array([self._pins[number] is not None for number in profile.tolist()], np.bool_)
        made = self._sums = _Sums(
            demand.keys, types, profile, np.array(places, np.int64), np.array(starts, np.int64),
            pinned,
        )  # fmt: skip
        return made


def pinned_types(profile: Profile) -> tuple[str, ...] | None:
    """The instance types a profile is satisfied with; None when it does not say."""
    pins: set[str] | None = None
    for requirement in profile.requirements:
        if (
            requirement.key == LABEL_INSTANCE_TYPE
            and requirement.operator is RequirementOperator.IN
        ):
            named = set(requirement.values)
            pins = named if pins is None else pins & named
    return None if pins is None else tuple(sorted(pins))


def _by_type(fleet: MachineColumns) -> tuple[dict[str, int], I64, I64, F64]:
    """Types by place; Idle, Speculative and cheapest Idle per place, then of all, then of none."""
    classes = fleet.classes
    types: dict[str, int] = {}
    type_of_offering = [types.setdefault(offering[1], len(types)) for offering in classes.offerings]
    size = len(types)
    idle, speculative = np.zeros(size + 2, np.int64), np.zeros(size + 2, np.int64)
    cheapest = np.full(size + 2, math.inf)
    if size:
        type_of = np.array(type_of_offering, np.int64)[classes.offering]
        usable = (fleet.flags & UNAVAILABLE) == 0
        in_class = [
            np.bincount(fleet.cls[usable & (fleet.state == state)], minlength=len(classes))
            for state in (S.IDLE, S.SPECULATIVE)
        ]
        idle[:size] = np.bincount(type_of, weights=in_class[0], minlength=size)
        speculative[:size] = np.bincount(type_of, weights=in_class[1], minlength=size)
        there = in_class[0] > 0
        np.minimum.at(cheapest, type_of[there], classes.price[there] / 1e6)
        idle[size], speculative[size] = idle[:size].sum(), speculative[:size].sum()
    return types, idle, speculative, cheapest


def _message(
    profile: Profile, count: int, confidence: int, cost: float
) -> tuple[str, pb.ShardMessage]:
    key = f"available:{profile.fingerprint}"
    update = pb.AvailableCapacityUpdate(
        supersedes_key=key,
        requirements=requirements_to_proto(profile.requirements),
        available_count=count,
        confidence=pb.AvailableCapacityUpdate.Confidence.ValueType(confidence),
        cost_per_hour=cost,
    )
    return key, pb.ShardMessage(available_capacity=update)
