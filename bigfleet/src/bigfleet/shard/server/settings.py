"""What the owner of a shard may set, as flags, variables and keys of a file.

Here settings are read and checked; `tuning` hands them on as the values the parts understand. A
process needs its id and nothing else: it starts without any peer.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from bigfleet.decision import Policy, VictimWeights
from bigfleet.decision.policy import MAX_WORK, SECOND
from bigfleet.observe.settings import (
    ALLOW_PLAINTEXT,
    ALLOW_PLAINTEXT_PAGES,
    Dial,
    Duration,
    Listen,
    Pages,
    ProcessSettings,
    SettingsError,
    Texts,
    check_listen,
    check_pages,
)
from bigfleet.provider import ProviderSite, SiteError
from bigfleet.shard.act.executor import PoolSettings
from bigfleet.shard.act.rails import RailSettings
from bigfleet.shard.decide.watchdog import MOST_SECONDS
from bigfleet.shard.demand.quarantine import QuarantineSettings
from bigfleet.shard.demand.symbol_gc import UNUSED
from bigfleet.shard.operators.outbox import DEFAULT_BOUND
from bigfleet.wire.errors import TlsFilesError
from bigfleet.wire.identity import can_be_named
from bigfleet.wire.rollup_limits import MIB, RollUpLimits
from bigfleet.wire.tls import TlsFiles
from bigfleet_base.addresses import Endpoint, dialled, own_address

# What the owner of a shard may set, as values its parts understand.


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


Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]


class ShardSettings(ProcessSettings):
    """Settings of one shard; durations in seconds."""

    shard_id: str = Field(description="Id of this shard, unique in the fleet.")
    listen: Listen = Field(
        "127.0.0.1:7780", description="Address of sessions, reading and administration."
    )
    advertise_addr: Dial = Field(
        "",
        description="Where others dial this shard; where empty, the host it listens on, or the "
        "name of this machine.",
    )
    metrics_addr: Pages = Field(
        "127.0.0.1:8780",
        description="Address of /metrics and probes; 0 or empty switches them off.",
    )
    allow_plaintext: bool = Field(False, description=ALLOW_PLAINTEXT)
    allow_plaintext_pages: bool = Field(False, description=ALLOW_PLAINTEXT_PAGES)
    data_dir: Path = Field(Path(".bigfleet/shard"), description="Where epoch and journal are kept.")
    provider_addr: Texts = Field(
        (), description="A provider as [name=]host:port[@region]; may be repeated."
    )
    coordinator_addr: Texts = Field((), description="A coordinator's address; may be repeated.")

    cycle_interval: Duration = Field(10.0, gt=0, description="Time between two ticks.")
    min_cycle_gap: Duration = Field(0.2, description="Least time between two cycles.")
    ready_after: Duration = Field(
        30.0, description="Ready by then even if a provider has not answered."
    )
    workers: Count = Field(1, description="Workers of phase 1.")

    execute_concurrency: Count = Field(64, description="Actions that run at the same time.")
    execute_queue: Count = Field(16_384, description="Actions that may wait.")
    action_timeout: Duration = Field(30.0, gt=0, description="Deadline of one action.")
    max_actions_per_cycle: Count = Field(8192, description="Actions one cycle may start.")
    outbox_size: Count = Field(8192, description="Frames that may wait for one operator.")

    reclaim_cap: Share = Field(
        0.05, description="Share of a cluster's machines reclaimed per window at most."
    )
    reclaim_window: Duration = Field(10.0, gt=0, description="The window of the reclaim cap.")
    reclaim_hold: Duration = Field(30.0, description="Time a machine is unclaimed before reclaim.")
    spot_release_hold: Duration = Field(60.0, description="Idle time of spot before release.")
    on_demand_release_hold: Duration = Field(
        600.0, description="Idle time of on-demand before release."
    )
    readiness_deadline: Duration = Field(
        900.0, description="Time a node may be not Ready before it stops counting."
    )
    max_dollars_per_hour: float | None = Field(
        None, ge=0, description="Spend limit of elastic capacity; none where absent."
    )
    pause: bool = Field(False, description="Start paused: decide, execute nothing.")
    dry_run: bool = Field(False, description="Decide and log, execute nothing.")

    quarantine_fraction: Share = Field(
        0.1, description="A roll-up that keeps less of the last one is held; 0 holds none."
    )
    quarantine_rows: Count = Field(10, description="Rows are compared from so many on.")
    quarantine_rollups: Count = Field(3, description="Equal roll-ups in a row that are believed.")
    quarantine_time: Duration = Field(60.0, description="Least time a roll-up is held.")

    max_decision_time: Duration = Field(
        20.0, gt=0, description="A decision that takes longer is discarded as a whole."
    )
    max_work: Count = Field(
        MAX_WORK, ge=1, description="Weight of all demand above which the heaviest clusters wait."
    )
    max_rows_per_cluster: Count = Field(
        20_000, ge=1, description="Rows of demand one cluster may ask for; more are refused."
    )
    max_requirement_sets_per_cluster: Count = Field(
        2_000, ge=1, description="Different sets of requirements one cluster may ask for."
    )
    max_bytes_per_cluster: Count = Field(
        64 * MIB, ge=1, description="Bytes of one cluster's roll-up at most."
    )

    victim_weight_priority: Weight = Field(1.0, description="Weight of the priority gap.")
    victim_weight_drain: Weight = Field(0.1, description="Weight of a fast drain.")
    victim_weight_interruption: Weight = Field(0.1, description="Weight of cheap interruption.")
    victim_weight_reclamation: Weight = Field(0.1, description="Weight of cheap reclamation.")

    epoch: int | None = Field(
        None, ge=1, le=2**63 - 1, description="Fencing epoch, instead of the data directory's."
    )
    tls_cert: str = Field("", description="Certificate; with key and CA, mutual TLS.")
    tls_key: str = Field("", description="Key of the certificate.")
    tls_ca: str = Field("", description="CA bundle for both directions.")

    audit_log: Path | None = Field(None, description="File of decisions, one JSON line each.")
    otlp_endpoint: str = Field(
        "", description="Where traces go, as http://host:4317; nowhere, if empty."
    )
    trace_ratio: float = Field(
        1.0, ge=0, le=1, description="Share of traces that is kept; the same everywhere."
    )
    log_format: Literal["text", "json"] = Field("text", description="Form of log lines.")
    log_level: Literal["debug", "info", "warn", "error"] = Field("info", description="Least level.")
    metrics_warmup_cycles: int = Field(
        0, ge=0, description="Cycles at the start that cycle histograms leave out."
    )
    phase_attribution_log: bool = Field(False, description="Log where each cycle's time went.")

    @field_validator("shard_id")
    @classmethod
    def _id_can_be_named(cls, value: str) -> str:
        if not can_be_named(value):
            raise ValueError(
                f"{value[:80]!r} is not an id of a shard: begin with a letter or a digit, and use "
                "letters, digits, '-', '_', '.' and '~', at most 253 of them, as in s-1"
            )
        return value

    @field_validator("provider_addr")
    @classmethod
    def _providers_are_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = [provider_site(text).name for text in value]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"provider {min(twice)!r} is named twice: give each its own name=")
        return value

    @field_validator("coordinator_addr")
    @classmethod
    def _coordinators_are_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(dialled, value))

    @model_validator(mode="after")
    def _tls_is_whole(self) -> ShardSettings:
        try:
            self.tls_files()
        except TlsFilesError as error:
            raise ValueError(str(error)) from None
        return self

    @model_validator(mode="after")
    def _addresses_hold_together(self) -> ShardSettings:
        has_tls = self.tls_files() is not None
        check_listen(self.listen, "--listen", has_tls=has_tls, allowed=self.allow_plaintext)
        check_pages(self.metrics_addr, "--metrics-addr", allowed=self.allow_plaintext_pages)
        self.address()
        return self

    def address(self) -> str:
        """Where others dial this shard, which is what it registers."""
        if not self.coordinator_addr:
            return self.advertise_addr or self.listen
        return own_address(
            self.advertise_addr,
            Endpoint.parse(self.listen),
            self.coordinator_addr,
            socket.gethostname(),
            f"shard {self.shard_id}",
        )

    def tls_files(self) -> TlsFiles | None:
        """The three files of mutual TLS; None for plaintext."""
        return TlsFiles.of(self.tls_cert, self.tls_key, self.tls_ca)

    def tuning(self) -> ShardConfig:
        """The settings as the parts of a shard take them."""
        return ShardConfig(
            shard_id=self.shard_id,
            address=self.address(),
            providers=tuple(provider_site(text) for text in self.provider_addr),
            coordinators=self.coordinator_addr,
            cycle_interval=self.cycle_interval,
            min_cycle_gap=self.min_cycle_gap,
            max_decision_seconds=self.max_decision_time,
            ready_after=self.ready_after,
            epoch=self.epoch,
            policy=self._policy(),
            pool=PoolSettings(self.execute_concurrency, self.execute_queue, self.action_timeout),
            rails=RailSettings(
                self.reclaim_cap, self.reclaim_window, self.max_actions_per_cycle, self.dry_run
            ),
            quarantine=QuarantineSettings(
                self.quarantine_fraction,
                self.quarantine_rows,
                self.quarantine_rollups,
                self.quarantine_time,
            ),
            limits=RollUpLimits(
                self.max_rows_per_cluster,
                self.max_requirement_sets_per_cluster,
                self.max_bytes_per_cluster,
            ),
            outbox_bound=self.outbox_size,
            metrics_warmup_cycles=self.metrics_warmup_cycles,
            phase_attribution=self.phase_attribution_log,
        )

    def _policy(self) -> Policy:
        limit = self.max_dollars_per_hour
        return Policy(
            weights=VictimWeights(
                self.victim_weight_priority,
                self.victim_weight_drain,
                self.victim_weight_interruption,
                self.victim_weight_reclamation,
            ),
            reclaim_hold=round(self.reclaim_hold * SECOND),
            spot_release_hold=round(self.spot_release_hold * SECOND),
            on_demand_release_hold=round(self.on_demand_release_hold * SECOND),
            readiness_deadline=round(self.readiness_deadline * SECOND),
            spend_limit_micro=None if limit is None else round(limit * 1e6),
            workers=self.workers,
            max_work=self.max_work,
        )


def provider_site(text: str) -> ProviderSite:
    """The provider of `[name=]host:port[@region]`; without a name it is called like its address."""
    name, named, rest = text.rpartition("=")
    address, _, region = rest.partition("@")
    try:
        return ProviderSite(name if named else address, address, region)
    except SiteError as error:
        raise ValueError(f"{error}, as [name=]host:port[@region]") from None


__all__ = ["SettingsError", "ShardSettings", "provider_site"]
