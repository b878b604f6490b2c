"""A profile as values: what `read_profile` makes of a file, checked. Times are seconds.

Offsets of actions, bursts and steps count from the start of the soak, unless `relative_to` says
otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SeedTiers:
    """Machines there are before demand is: shares of the effective machines, and counts a shard."""

    configured_fraction: float = 0.0
    configured_by_class: Mapping[str, float] = field(default_factory=dict)
    idle_headroom_fraction: float = 0.0
    speculative_multiplier: int = 0
    speculative_count: int = 0
    spot_count: int = 0
    pre_bind: bool = False


@dataclass(frozen=True, slots=True)
class DemandBurst:
    """Extra pods of one archetype for a while; for good where the duration is 0."""

    at_seconds: float
    archetype: str
    extra_target: int
    duration_seconds: float = 0.0
    relative_to: str = "driver"
    selectivity: float = 1.0


@dataclass(frozen=True, slots=True)
class DemandTarget:
    """From a moment on this share of the pods exists."""

    at_seconds: float
    target_multiplier: float


@dataclass(frozen=True, slots=True)
class DeliveryProbe:
    """Demand added after the settle mark, so that delivery has samples. None: the default."""

    machines: int | None = None
    archetype: str | None = None
    at_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class LoadProfile:
    """How demand moves."""

    ramp_seconds: float
    soak_seconds: float = 600.0
    churn_per_minute: float = 0.0
    settle_seconds: float = 0.0
    bursts: tuple[DemandBurst, ...] = ()
    scale_downs: tuple[DemandTarget, ...] = ()
    demand_steps: tuple[DemandTarget, ...] = ()
    delivery_probe: DeliveryProbe = DeliveryProbe()
    open_loop_multiplier: float = 1.0


@dataclass(frozen=True, slots=True)
class RunnerAction:
    """A disturbance."""

    at_seconds: float
    action: str
    duration_seconds: float = 0.0
    exclude_from_latency: bool = False
    expect: Mapping[str, float] = field(default_factory=dict)
    """Tighter windows, by check."""


@dataclass(frozen=True, slots=True)
class FleetTopology:
    """How many of everything; None: the default."""

    shard_replicas: int | None = None
    coordinator_replicas: int | None = None
    clusters: int | None = None
    cluster_sizes: str = "lognormal:0.8"


@dataclass(frozen=True, slots=True)
class LatencyModel:
    """A log-normal latency."""

    p50_seconds: float
    p99_seconds: float


@dataclass(frozen=True, slots=True)
class ProviderBehaviour:
    """What the simulated provider does."""

    latency: Mapping[str, Mapping[str, LatencyModel]] = field(default_factory=dict)
    """By method and capacity type; `default` for all others."""
    stockouts: tuple[Mapping[str, Any], ...] = ()
    quota: tuple[Mapping[str, Any], ...] = ()
    rate_limit: Mapping[str, float] = field(default_factory=dict)
    correlated_failures: tuple[Mapping[str, Any], ...] = ()
    spot: Mapping[str, Any] = field(default_factory=dict)
    create_failure_ratio: float = 0.0
    never_ready_ratio: float = 0.0
    consistency_lag_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SkippedGate:
    """A gate that cannot be measured here, and why. It makes the run incomplete."""

    gate: str
    reason: str


@dataclass(frozen=True, slots=True)
class SloRules:
    """What the run is held to beside the gates that every run has."""

    thresholds: Mapping[str, float] = field(default_factory=dict)
    """By gate, where a profile says another one than usual."""
    max_reclaims: float | None = None
    max_unforced: float = 0.0
    min_released_ratio: float = 0.95
    max_reclaims_per_released: float = 1.1
    expect_standing_shortfall: bool = False
    shortfall_stability_max: float = 0.0
    shortfall_confined_below: str = ""
    expect_preemptions: bool = False
    expect_cost_routing: bool = False
    misrouted_max: float = 0.0
    tolerant_bucket: str = "0"
    sensitive_bucket: str = "8"
    goals: str = "report"
    dev: bool = False
    """Development thresholds: wider where the catalogue marks them."""
    skip: tuple[SkippedGate, ...] = ()


@dataclass(frozen=True, slots=True)
class ScaleProfile:
    """One profile."""

    name: str
    machines: int
    load: LoadProfile
    description: str = ""
    density: float | None = None
    catalogue: str = "realistic"
    seed: SeedTiers = SeedTiers()
    ramp_budget_seconds: float | None = None
    actions: tuple[RunnerAction, ...] = ()
    topology: FleetTopology = FleetTopology()
    failure_rate_per_second: float = 1.16e-7
    provider: ProviderBehaviour = ProviderBehaviour()
    overrides: Mapping[str, Any] = field(default_factory=dict)
    slo: SloRules = SloRules()

    @property
    def shards(self) -> int:
        """Shards of the run."""
        return self.topology.shard_replicas or max(1, -(-self.machines // 500_000))

    @property
    def coordinators(self) -> int:
        """Coordinator replicas of the run."""
        if self.topology.coordinator_replicas is not None:
            return self.topology.coordinator_replicas
        return 3 if any("coordinator" in each.action for each in self.actions) else 1
