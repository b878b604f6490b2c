"""Needs with their verdicts, as rows that lists filter and sort.

A row keeps the shard's own view for the drawer; what lists show of it is computed once, when it
comes in.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from bigfleet.model import PenaltyBucket
from bigfleet_api.v1alpha1 import capacity_pb2
from bigfleet_api.v1alpha1 import shardread_pb2 as pb

CLASSES: Final = ("critical", "service", "batch", "other")
_FLOORS: Final = ((1_000_000, "critical"), (1_000, "service"), (100, "batch"))
_SAME: Final = capacity_pb2.NodeSelectorRequirement.OPERATOR_SAME


@dataclass(frozen=True, slots=True)
class NeedRow:
    """One need as one shard sees it."""

    key: str
    """Stays the same for as long as the row asks for the same thing."""
    shard: str
    cluster: str
    priority: int
    priority_class: str
    asks: dict[str, str]
    machines: int
    satisfied: bool
    reason: str
    age_cycles: int
    penalty: str
    gang: bool
    label: str
    view: pb.NeedView

    def document(self) -> dict[str, object]:
        """As lists show it."""
        return {
            "key": self.key,
            "shard": self.shard,
            "cluster": self.cluster,
            "priority": self.priority,
            "priority_class": self.priority_class,
            "asks": self.asks,
            "machines": self.machines,
            "satisfied": self.satisfied,
            "reason": self.reason or None,
            "age_cycles": self.age_cycles,
            "penalty": self.penalty,
            "gang": self.gang,
            "label": self.label,
        }


def row_of(shard: str, view: pb.NeedView) -> NeedRow:
    """A shard's view as a row."""
    need = view.need
    bucket = need.interruption_penalty_bucket
    return NeedRow(
        key=_key(shard, view),
        shard=shard,
        cluster=view.cluster_id,
        priority=need.priority,
        priority_class=priority_class(need.priority),
        asks=dict(sorted(need.aggregate_resources.items())),
        machines=view.claimed_machine_count,
        satisfied=view.satisfied,
        reason="" if view.satisfied else reason_name(view.unmet_reason),
        age_cycles=view.age_cycles_unmet,
        penalty=_penalty(bucket),
        gang=any(r.operator == _SAME for r in need.requirements),
        label=_label(need),
        view=view,
    )


def priority_class(priority: int) -> str:
    """The class metrics count a priority under."""
    return next((name for floor, name in _FLOORS if priority >= floor), "other")


def reason_name(reason: int) -> str:
    """`PRIORITY_STARVED` of its number; the number where it is unknown."""
    try:
        name = pb.UnmetReason.Name(pb.UnmetReason.ValueType(reason))
    except ValueError:
        return str(reason)
    return name.removeprefix("UNMET_REASON_")


def unmet_by_class(rows: Iterable[NeedRow]) -> dict[str, int]:
    """Rows that are unmet, by class of priority."""
    counts = Counter(row.priority_class for row in rows if not row.satisfied)
    return {name: counts[name] for name in CLASSES}


@dataclass(frozen=True, slots=True)
class NeedFilter:
    """Which needs to show; empty texts mean all."""

    cluster: str = ""
    shard: str = ""
    priority_class: str = ""
    reason: str = ""
    verdict: str = ""
    """`met`, `unmet` or empty."""
    words: str = ""

    def passes(self, row: NeedRow) -> bool:
        """Whether a row is wanted."""
        return (
            (not self.cluster or row.cluster == self.cluster)
            and (not self.shard or row.shard == self.shard)
            and (not self.priority_class or row.priority_class == self.priority_class)
            and (not self.reason or row.reason == self.reason)
            and (not self.verdict or row.satisfied == (self.verdict == "met"))
            and (not self.words or self.words in f"{row.cluster} {row.label} {row.key}".lower())
        )


SORTS: Final = {
    "priority": lambda row: (-row.priority, row.satisfied, row.cluster, row.key),
    "cluster": lambda row: (row.cluster, -row.priority, row.key),
    "age": lambda row: (-row.age_cycles, -row.priority, row.key),
    "machines": lambda row: (-row.machines, -row.priority, row.key),
}


def select(rows: Sequence[NeedRow], wanted: NeedFilter, sort: str = "") -> list[NeedRow]:
    """The rows that pass, unmet ones first unless a sort is named."""
    found = [row for row in rows if wanted.passes(row)]
    if sort in SORTS:
        return sorted(found, key=SORTS[sort])
    return sorted(found, key=lambda row: (row.satisfied, -row.priority, row.cluster, row.key))


def _key(shard: str, view: pb.NeedView) -> str:
    parts = (
        shard,
        view.cluster_id,
        view.profile_fingerprint,
        view.need.group,
        view.need.size_class,
        # Folded gangs are rows without a group that would look alike.
        ",".join(f"{name}={text}" for name, text in sorted(view.need.min_unit.items())),
    )
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:16]


def _penalty(bucket: int) -> str:
    try:
        return PenaltyBucket(bucket).label
    except ValueError:
        return str(bucket)


def _label(need: capacity_pb2.CapacityNeed) -> str:
    """What makes this need different from others, in a few words."""
    if need.group:
        return f"gang {need.group.rpartition('|')[2] or need.group}"
    places = [
        f"{r.key.rpartition('/')[2]} {', '.join(r.values)}" for r in need.requirements if r.values
    ]
    unit = ", ".join(f"{name} {text}" for name, text in sorted(need.min_unit.items()))
    return "; ".join([*places, f"units of {unit}" if unit else "any size"])
