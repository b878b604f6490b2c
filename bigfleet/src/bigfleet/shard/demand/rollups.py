"""What becomes of a roll-up: read, judged, taken, and what the operator is told of it.

Large ones are read away from the event loop. Refused ones leave the last accepted demand as it is;
held ones as well: until one is believed nothing is known of what the cluster wants. After a start
the newest of each cluster is held until there is something to compare it with. Taking one wakes
any caller that waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from bigfleet.observe.process import Clock, Offload
from bigfleet.shard.demand.cluster_rows import RowChanges
from bigfleet.shard.demand.errors import RollUpRefusedError
from bigfleet.shard.demand.ingest import Ingest, RollUp
from bigfleet.shard.demand.needs_table import NeedsTable
from bigfleet.shard.demand.quarantine import Quarantine, QuarantineVerdict
from bigfleet_api.v1alpha1 import capacity_pb2, shard_pb2
from bigfleet_base.identifiers import SHOWN_OF_ERRORS, cut

# What roll-ups are counted by; the names and buckets of the metrics are the registry's.


class RollUpMetrics(Protocol):
    """One method per thing that happens to a roll-up."""

    def rollup_accepted(self, cluster: str) -> None:
        """A roll-up was applied."""

    def rollup_rejected(self, cluster: str) -> None:
        """A roll-up was refused whole."""

    def rollup_over_limit(self, cluster: str, limit: str) -> None:
        """A roll-up was refused because it is beyond this limit."""

    def rollup_quarantined(self, cluster: str, held: bool) -> None:
        """Whether the cluster's newest roll-up is held."""

    def rollup_ingest(self, seconds: float) -> None:
        """A roll-up was decoded, checked and compared."""


OnRollUp = Callable[[str, RowChanges], None]
OnTaken = Callable[[str, int, RowChanges, int], None]

ROLLUP: Final = "rollup"
REJECTED: Final = "rollup_rejected"
_INLINE_ROWS: Final = 400
"""Rows read without leaving the event loop: 3 ms, or 30 when every profile of them is new."""
_log = logging.getLogger(__name__)


async def _ignored(_cluster: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class _Parked:
    """A roll-up that cannot be judged yet, and when it came."""

    rollup: RollUp
    came: int


@dataclass
class RollUpIntake:
    """The one place where demand comes in."""

    needs: NeedsTable
    quarantine: Quarantine
    clock: Clock
    offload: Offload
    metrics: RollUpMetrics
    ingest: Ingest = field(default_factory=Ingest)
    on_rollup: list[OnRollUp] = field(default_factory=list)
    """Called with the cluster and what changed, for each roll-up that was taken."""
    on_taken: list[OnTaken] = field(default_factory=list)
    """Called with cluster, timestamp, what changed and when it came, for the same roll-ups."""
    mark_present: Callable[[str], Awaitable[None]] = _ignored
    """Awaited before a cluster's roll-up is judged; OSError leaves it unanswered."""
    are_comparable: Callable[[], bool] = lambda: True
    """Whether it is known what clusters are bound to, as far as that is waited for."""
    _parked: dict[str, _Parked] = field(default_factory=dict)

    async def take(
        self,
        cluster: str,
        message: capacity_pb2.ClusterCapacityNeeds,
        wanted: Callable[[], bool],
    ) -> shard_pb2.Acknowledgement | None:
        """Take a roll-up and answer it; None when its session ended meanwhile."""
        started, came = self.clock.monotonic(), self.clock.now()
        ack = shard_pb2.Acknowledgement(
            echo=ROLLUP, rollup_timestamp_unix_nanos=message.timestamp_unix_nanos
        )
        try:
            rollup = await self._read(message)
        except RollUpRefusedError as error:
            ack.echo, ack.reason = REJECTED, self.refuse(cluster, str(error), error.limit)
            return ack
        if not await self._is_noted(cluster) or not wanted():
            return None
        if self.are_comparable():
            self._parked.pop(cluster, None)
            ack.held = not self._take(cluster, rollup, came)
        else:
            # Answered all the same: an operator that hears nothing takes us for an older shard.
            self._parked[cluster] = _Parked(rollup, came)
            ack.held = True
        self.metrics.rollup_ingest(self.clock.monotonic() - started)
        return ack

    async def take_parked(self) -> None:
        """Judge what came before anything could be judged."""
        while self._parked:
            cluster, parked = self._parked.popitem()
            self._take(cluster, parked.rollup, parked.came)
            await asyncio.sleep(0)

    def _take(self, cluster: str, rollup: RollUp, came: int) -> bool:
        if not self._judge(cluster, rollup):
            return False
        changes = self.needs.apply(cluster, rollup)
        self.metrics.rollup_accepted(cluster)
        for listener in self.on_rollup:
            listener(cluster, changes)
        for each in self.on_taken:
            each(cluster, rollup.timestamp_ns, changes, came)
        return True

    @property
    def max_rows(self) -> int:
        """How many rows one cluster may ask for."""
        return self.ingest.limits.rows

    def refuse(self, cluster: str, reason: str, limit: str = "") -> str:
        """Count and log a roll-up of which nothing is taken; the reason, cut."""
        reason = cut(reason, SHOWN_OF_ERRORS)
        self.metrics.rollup_rejected(cluster)
        if limit:
            self.metrics.rollup_over_limit(cluster, limit)
        _log.error(
            "rollup rejected at ingest validation; keeping last-known-good demand",
            extra={"cluster": cluster, "error": reason},
        )
        return reason

    def forget(self, cluster: str) -> None:
        """A cluster is gone for good, and its demand with it."""
        self._parked.pop(cluster, None)
        self.needs.forget(cluster)
        self.quarantine.forget(cluster)
        self.metrics.rollup_quarantined(cluster, False)

    async def _is_noted(self, cluster: str) -> bool:
        try:
            await self.mark_present(cluster)
        except OSError as error:
            _log.error(
                "roll-up ignored: could not persist that the cluster is active again",
                extra={"cluster": cluster, "error": str(error)},
            )
            return False
        return True

    async def _read(self, message: capacity_pb2.ClusterCapacityNeeds) -> RollUp:
        if len(message.needs) <= _INLINE_ROWS:
            return self.ingest.read(message)
        return await self.offload(lambda: self.ingest.read(message))

    def _judge(self, cluster: str, rollup: RollUp) -> bool:
        """Whether it is taken."""
        judgement = self.quarantine.judge(cluster, rollup, self.clock.monotonic())
        facts = {
            "cluster": cluster,
            "rows": judgement.rows,
            "baseline": judgement.baseline,
            "consecutive": judgement.consecutive,
        }
        if judgement.verdict is QuarantineVerdict.HELD:
            _log.warning("rollup quarantined", extra=facts)
        elif judgement.verdict is QuarantineVerdict.BELIEVED:
            _log.warning("quarantined rollup accepted", extra=facts)
        held = judgement.verdict is QuarantineVerdict.HELD
        self.metrics.rollup_quarantined(cluster, held)
        return not held
