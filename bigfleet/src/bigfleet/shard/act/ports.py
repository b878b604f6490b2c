"""What executing needs from the other parts of the shard, as small contracts.

The book, the providers and the clock are used as they are. Sessions, the lister and the metrics
are known here only by what is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from bigfleet.model import Machine, Profile
from bigfleet.shard.operators.messages import Blob, Instruction


class OperatorSessions(Protocol):
    """The operators that are connected."""

    async def bootstrap(
        self, cluster: str, profile: Profile, machine: Machine, seconds: float
    ) -> Blob:
        """Data that makes the machine a node. NoSessionError, BlobError or TimeoutError."""

    def send_reclaim(self, cluster: str, instruction: Instruction) -> bool:
        """Whether there is a session that took it."""


class Refresher(Protocol):
    """Who asks providers for the truth."""

    def refresh(self, machine_id: str) -> None:
        """Look at this machine soon."""


class ExecuteMetrics(Protocol):
    """The part of the shard's metrics that is written here; names as in the catalogue."""

    def action_passed(self, kind: str) -> None:
        """actions_total."""

    def action_ended(self, kind: str, outcome: str) -> None:
        """action_execute_outcomes_total."""

    def actions_deferred(self, count: int) -> None:
        """actions_deferred_total."""

    def actions_dropped(self, count: int) -> None:
        """actions_dropped_total."""

    def actions_deduped(self, count: int) -> None:
        """actions_deduped_total."""

    def action_queue(self, depth: int, inflight: int) -> None:
        """action_queue_depth and execute_inflight."""

    def reclaims_capped(self, count: int) -> None:
        """reclaims_capped_total."""

    def idle_released(self) -> None:
        """idle_releases_total."""

    def create_failed(self, reason: str) -> None:
        """create_failures_total."""

    def actions_suppressed(self, counts: Mapping[str, int]) -> None:
        """actions_suppressed_total, by kind."""

    def actions_dryrun(self, counts: Mapping[str, int]) -> None:
        """actions_dryrun_total, by kind."""

    def actuation_paused(self, paused: bool) -> None:
        """actuation_paused."""

    def machine_rejected(self, reason: str) -> None:
        """machines_rejected_total."""

    def bootstrap_received(self, seconds: float) -> None:
        """request_bootstrap_seconds."""

    def configure_accepted(self, seconds: float) -> None:
        """configure_phase_seconds."""

    def created(self, seconds: float) -> None:
        """create_phase_seconds."""

    def joined(self, seconds: float) -> None:
        """join_phase_seconds."""

    def drained(self, seconds: float) -> None:
        """drain_phase_seconds."""
