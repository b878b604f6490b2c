"""What planning looks at besides reports: the tables, at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bigfleet.coordinator.state import Move, Pool, ProviderEntry

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
