"""What the owner of a shard may set, as values its parts understand."""

from __future__ import annotations

from dataclasses import dataclass, field

from bigfleet.decision import Policy
from bigfleet.provider import ProviderSite
from bigfleet.shard.act.executor import PoolSettings
from bigfleet.shard.act.rails import RailSettings
from bigfleet.shard.decide.watchdog import MOST_SECONDS
from bigfleet.shard.demand.quarantine import QuarantineSettings
from bigfleet.shard.demand.symbol_gc import UNUSED
from bigfleet.shard.operators.outbox import DEFAULT_BOUND
from bigfleet.wire.rollup_limits import RollUpLimits


@dataclass(frozen=True)
class ShardConfig:
    """Settings of one shard; times in seconds."""

    shard_id: str
    address: str = ""
    """Where others dial this shard."""
    providers: tuple[ProviderSite, ...] = ()
    coordinators: tuple[str, ...] = ()
    cycle_interval: float = 10.0
    min_cycle_gap: float = 0.2
    max_decision_seconds: float = MOST_SECONDS
    ready_after: float = 30.0
    """Without an answer of every provider by then, it is ready all the same."""
    epoch: int | None = None
    """Instead of the one in the data directory."""
    policy: Policy = field(default_factory=Policy)
    pool: PoolSettings = field(default_factory=PoolSettings)
    rails: RailSettings = field(default_factory=RailSettings)
    quarantine: QuarantineSettings = field(default_factory=QuarantineSettings)
    limits: RollUpLimits = field(default_factory=RollUpLimits)
    outbox_bound: int = DEFAULT_BOUND
    unused_identities: int = UNUSED
    """Names of finished jobs that are let be before they are forgotten."""
    metrics_warmup_cycles: int = 0
    phase_attribution: bool = False
    """Write to the log where each cycle's time went, and why."""
