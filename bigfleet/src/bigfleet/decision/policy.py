"""What the owner of a fleet may set about decisions, and nothing more.

A ``Policy`` is a value: the shard builds one from its flags and from what the coordinator
assigned to it, and hands it to the engine with every cycle. Rules that must never be bent
(releasing owned hardware, for one) have no field here, so that no setting can express them.
Times are nanoseconds, money is integer micro-dollars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SECOND = 1_000_000_000
TICK = 10 * SECOND
"""Limits that are counted in cycles elsewhere count ticks here: cycles come at any pace."""

VOLUNTARY_GRACE_SECONDS = 600
MAX_WORK = 50_000_000
"""Some twenty clusters at the limits of a roll-up, or one that owns 500,000 machines, with room."""


@dataclass(frozen=True, slots=True)
class VictimWeights:
    """Weights of the victim score; higher scores make better victims."""

    priority: float = 1.0
    drain: float = 0.1
    interruption: float = 0.1
    reclamation: float = 0.1


@dataclass(frozen=True, slots=True)
class Policy:
    """Settings of one cycle."""

    weights: VictimWeights = field(default_factory=VictimWeights)
    reclaim_hold: int = 30 * SECOND
    spot_release_hold: int = 60 * SECOND
    on_demand_release_hold: int = 600 * SECOND
    readiness_deadline: int = 900 * SECOND
    phantom_fraction: float = 0.3
    """Above this share of a cluster's machines (and ``phantom_minimum``) nothing is phantom."""
    phantom_minimum: int = 3
    interruption_lead: int = 60 * SECOND
    """An announced end this close is drained whether or not a replacement is there."""
    park_ticks: int = 8
    quotas: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(provider, region) -> how many of its slots may be outside Speculative."""
    spend_limit_micro: int | None = None
    """Micro-dollars per hour of elastic capacity above which nothing is provisioned."""
    reclaim_budget: Mapping[str, int] | None = None
    """Cluster -> how many more excess machines may be taken from it in this window; None: no limit.
    Phase 2 counts as well: a machine that it takes from a cluster's excess is a node lost too."""
    paused: bool = False
    max_work: int = MAX_WORK
    """The weight of all clusters above which the heaviest are left out (see `work_budget`)."""
    frozen: frozenset[str] = frozenset()
    """Clusters that are left out whatever they weigh."""
    workers: int = 1
