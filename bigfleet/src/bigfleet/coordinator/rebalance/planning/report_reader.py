"""Reports as values: what a shard lacks, what it could give, what it has.

A report is read once. Of the labels of what a shard could give only those are looked at that some
shortfall asks for: a fleet may have a hundred thousand racks, and hardly anybody asks for one of
them, so that rows of many racks are one kind. When a shortfall asks for another label, everything
is read again. What cannot be read is left out: a shortfall of a newer release is met by the shard
itself or waits.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

import numpy as np

from bigfleet.coordinator.rebalance.planning.catalogue import (
    I64,
    Catalogue,
    MachineKind,
    WantedShape,
)
from bigfleet.coordinator.reports.report_cache import ReceivedReport
from bigfleet.coordinator.state import Move, Pool, ProviderEntry
from bigfleet.model import QuantityError, RequirementError, RequirementOperator, TaintError
from bigfleet.wire.needs import amounts_from_proto, requirement_from_proto
from bigfleet.wire.taints import taints_from_proto, tolerations_from_proto
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

_MOST_KINDS: Final = 50_000
"""Beyond this the catalogue begins again, so that kinds no shard has any more go."""
_UNREADABLE: Final = -1
_log = logging.getLogger(__name__)
_ShapeKey = tuple[str | bytes, ...]


@dataclass(frozen=True, slots=True)
class ReportedShortfall:
    """A shortfall of one shard."""

    shard: str
    fingerprint: str
    shape: int
    deficit: Mapping[str, int]
    priority: int
    age: int
    interruption: int
    is_constrained: bool
    """Whether its machines must be together, which never crosses shards."""


@dataclass(frozen=True, slots=True)
class ShardView:
    """One shard, as it said last. Rows are what it could give."""

    shard: str
    shortfalls: tuple[ReportedShortfall, ...]
    kinds: I64
    idle: I64
    speculative: I64
    types: Mapping[str, int]
    """Machines in every state by instance type; the same by zone."""
    slots: Mapping[Pool, int]
    """Machines by provider and region, in all states."""


_Columns = tuple[I64, I64, I64]
"""Kinds, and how many Idle and Speculative machines of each."""
_KindKey = tuple[str | bytes | None, ...]


class ReportReader:
    """Reads reports into one catalogue."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.catalogue = Catalogue()
        self._shapes: dict[_ShapeKey, tuple[int, bool] | None] = {}
        self._shortfalls: dict[str, tuple[ReceivedReport, tuple[ReportedShortfall, ...]]] = {}
        self._forget_kinds()

    def _forget_kinds(self) -> None:
        self.catalogue.forget_kinds()
        self._labels = tuple(sorted(self.catalogue.labels))
        self._kinds: dict[_KindKey, int] = {}
        self._views: dict[str, tuple[ReceivedReport, ShardView]] = {}

    def views(self, reports: Iterable[ReceivedReport]) -> list[ShardView]:
        """What these reports say, in their order."""
        received = list(reports)
        if len(self._shapes) > _MOST_KINDS:
            self._begin()
        known = self._shortfalls
        self._shortfalls = {one.shard_id: self._shortfalls_of(one, known) for one in received}
        is_full = len(self.catalogue.kinds) > _MOST_KINDS
        if is_full or len(self._labels) != len(self.catalogue.labels):
            self._forget_kinds()
        last, self._views = self._views, {}
        for one in received:
            seen = last.get(one.shard_id)
            view = seen[1] if seen is not None and seen[0] is one else self._read(one)
            self._views[one.shard_id] = (one, view)
        return [view for _, view in self._views.values()]

    def _shortfalls_of(
        self,
        received: ReceivedReport,
        known: Mapping[str, tuple[ReceivedReport, tuple[ReportedShortfall, ...]]],
    ) -> tuple[ReceivedReport, tuple[ReportedShortfall, ...]]:
        last = known.get(received.shard_id)
        if last is not None and last[0] is received:
            return last
        shortfalls = (self._shortfall(received.shard_id, one) for one in received.shortfalls)
        return received, tuple(shortfall for shortfall in shortfalls if shortfall is not None)

    def _read(self, received: ReceivedReport) -> ShardView:
        summary = received.summary or pb.ShardSummary()
        kinds, idle, speculative = self._columns(summary.free_by_class)
        return ShardView(
            shard=received.shard_id,
            shortfalls=self._shortfalls[received.shard_id][1],
            kinds=kinds,
            idle=idle,
            speculative=speculative,
            types=dict(summary.per_instance_type_counts),
            slots={
                (quota.provider, quota.region): sum(quota.per_shard.values())
                for quota in summary.quota_totals
            },
        )

    def _columns(self, offered: Iterable[pb.FreeClass]) -> _Columns:
        """What a shard could give, a row for each kind. A kind that cannot be read is left out."""
        counts: dict[int, list[int]] = {}
        for free in offered:
            labels = free.labels
            key = (
                free.instance_type, free.zone, free.provider, free.region,
                free.allocatable.SerializeToString(deterministic=True),
                *[taint.SerializeToString(deterministic=True) for taint in free.taints],
                *[labels.get(name) for name in self._labels],
            )  # fmt: skip
            kind = self._kinds[key] if key in self._kinds else self._new_kind(key, free)
            count = counts.setdefault(kind, [0, 0])
            count[0] += max(0, free.idle)
            count[1] += max(0, free.speculative)
        counts.pop(_UNREADABLE, None)
        rows = [(kind, *count) for kind, count in counts.items()]
        kinds, idle, speculative = np.array(rows, np.int64).reshape(-1, 3).T
        return kinds, idle, speculative

    def _new_kind(self, key: _KindKey, free: pb.FreeClass) -> int:
        number = _UNREADABLE
        try:
            allocatable = amounts_from_proto(free.allocatable.resources, "allocatable")
            taints = taints_from_proto(free.taints)
        except (QuantityError, TaintError) as error:
            _log.warning("a kind of machine cannot be read: %s", error)
        else:
            number = self.catalogue.kind(
                MachineKind(
                    free.instance_type, free.zone, free.provider, free.region,
                    allocatable,
                    {name: free.labels[name] for name in self._labels if name in free.labels},
                    taints,
                )
            )  # fmt: skip
        self._kinds[key] = number
        return number

    def _shortfall(self, shard: str, entry: pb.Shortfall) -> ReportedShortfall | None:
        try:
            deficit = amounts_from_proto(entry.deficit.resources, "deficit")
        except QuantityError as error:
            _log.warning("a shortfall of %r cannot be read: %s", shard, error)
            return None
        missing = tuple(sorted(name for name, amount in deficit.items() if amount > 0))
        if not missing:
            return None
        shape_key: tuple[str | bytes, ...] = (entry.profile_fingerprint,)
        if not entry.profile_fingerprint:
            shape_key = tuple(one.SerializeToString() for one in entry.requirements)
        shape_key += tuple(one.SerializeToString() for one in entry.tolerations)
        stated = "stated" if entry.tolerations_stated else ""
        unit = entry.min_unit.SerializeToString(deterministic=True)
        key = (*shape_key, stated, unit, *missing)
        found = self._shapes[key] if key in self._shapes else self._new_shape(key, entry, missing)
        if found is None:
            return None
        shape, is_same = found
        return ReportedShortfall(
            shard=shard,
            fingerprint=entry.profile_fingerprint or _named_by(key, entry.priority),
            shape=shape,
            deficit=deficit,
            priority=entry.priority,
            age=entry.age_cycles,
            interruption=entry.interruption_penalty_bucket,
            is_constrained=entry.topology_constrained or is_same,
        )

    def _new_shape(
        self, key: _ShapeKey, entry: pb.Shortfall, missing: tuple[str, ...]
    ) -> tuple[int, bool] | None:
        found = None
        try:
            requirements = tuple(requirement_from_proto(one) for one in entry.requirements)
            unit = amounts_from_proto(entry.min_unit.resources, "min_unit")
            tolerations = tuple(tolerations_from_proto(entry.tolerations))
        except (RequirementError, QuantityError, TaintError) as error:
            _log.warning("a shortfall cannot be read: %s", error)
        else:
            is_same = any(one.operator is RequirementOperator.SAME for one in requirements)
            number = self.catalogue.shape(
                WantedShape(
                    tuple(sorted(requirements)),
                    tuple(sorted(unit.items())),
                    missing,
                    tolerations if entry.tolerations_stated else None,
                )
            )
            found = (number, is_same)
        self._shapes[key] = found
        return found


def _named_by(key: _ShapeKey, priority: int) -> str:
    """A name for a shortfall whose shard gives it none."""
    return blake2b(repr((key, priority)).encode(), digest_size=16).hexdigest()


# What planning looks at besides reports: the tables, at one moment.

Key = tuple[str, str]
"""A shard, and the fingerprint of what it lacks."""


@dataclass(frozen=True, slots=True)
class PlanningInput:
    """Tables, time, and how long shortfalls have been waiting."""

    moves: Sequence[Move] = ()
    quotas: Mapping[Pool, Mapping[str, int]] = field(default_factory=dict)
    providers: Mapping[str, ProviderEntry] = field(default_factory=dict)
    now: int = 0
    """Unix nanoseconds."""
    escalated: Mapping[Key, int] = field(default_factory=dict)
    """When a shortfall was first seen as old enough."""
    is_whole: bool = True
    """Whether every registered shard has a fresh report."""
