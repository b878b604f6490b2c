"""What shards said last: the leader's memory, gone with the leadership.

A report counts only if it is newer than the last one of its shard: a later life, or a later number
in the same life. Everything is replaced by the next report, except a summary, which stays until
another one comes. Summaries are most of it, and are kept as they came: decoded, those of two
hundred shards would be most of a coordinator's memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from bigfleet.coordinator.state import Pool
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb


@dataclass(frozen=True, slots=True)
class ReceivedReport:
    """The last word of one shard. Times are Unix nanoseconds, `seconds` is the monotonic clock."""

    shard_id: str
    epoch: int
    cycle: int
    heartbeat_at: int
    seconds: float
    encoded_summary: bytes | None = None
    summary_at: int = 0
    shortfalls: tuple[pb.Shortfall, ...] = ()
    transfers: tuple[pb.HeldTransfer, ...] = ()

    @property
    def summary(self) -> pb.ShardSummary | None:
        """What the shard has, decoded each time; None while it never said."""
        if self.encoded_summary is None:
            return None
        return pb.ShardSummary.FromString(self.encoded_summary)


class ReportCache:
    """One `ReceivedReport` per shard."""

    def __init__(self) -> None:
        self._received: dict[str, ReceivedReport] = {}

    def is_new(self, report: pb.ShardReport) -> bool:
        """Whether a report is newer than what was heard of its shard."""
        last = self._received.get(report.shard_id)
        return last is None or (report.shard_epoch, report.cycle) > (last.epoch, last.cycle)

    def take(self, report: pb.ShardReport, now: int, seconds: float) -> ReceivedReport:
        """A new report replaces the one before. An empty list of shortfalls clears them."""
        last = self._received.get(report.shard_id)
        has_summary = report.HasField("summary")
        # Parts of a message keep the whole of it in memory, so what is kept is copied.
        kept = pb.ShardReport(shortfalls=report.shortfalls, transfers=report.transfers)
        received = ReceivedReport(
            shard_id=report.shard_id,
            epoch=report.shard_epoch,
            cycle=report.cycle,
            heartbeat_at=now,
            seconds=seconds,
            encoded_summary=(
                report.summary.SerializeToString()
                if has_summary
                else last.encoded_summary
                if last
                else None
            ),
            summary_at=now if has_summary else last.summary_at if last else 0,
            shortfalls=tuple(kept.shortfalls),
            transfers=tuple(kept.transfers),
        )
        self._received[report.shard_id] = received
        return received

    def get(self, shard_id: str) -> ReceivedReport | None:
        """The last word of a shard."""
        return self._received.get(shard_id)

    def __iter__(self) -> Iterator[ReceivedReport]:
        """All of them, by shard id."""
        return iter([self._received[shard] for shard in sorted(self._received)])

    def heartbeat_at(self, shard_id: str) -> int:
        """When a shard was last heard; 0 for never."""
        received = self._received.get(shard_id)
        return 0 if received is None else received.heartbeat_at

    def forget(self, shard_id: str) -> None:
        """A shard is no more; a report of any life counts again."""
        self._received.pop(shard_id, None)

    def keep(self, registered: Collection[str]) -> None:
        """Forget all others."""
        for shard_id in self._received.keys() - set(registered):
            del self._received[shard_id]

    def announced(self, pool: Pool, registered: Collection[str]) -> int | None:
        """How many slots of a provider and region there are, as all shards together say.

        None while a registered shard has said nothing yet, or where no report knows the pool.
        """
        total, known = 0, False
        for shard_id in registered:
            received = self._received.get(shard_id)
            summary = received.summary if received is not None else None
            if summary is None:
                return None
            for quota in summary.quota_totals:
                if (quota.provider, quota.region) == pool:
                    known = True
                    total += sum(quota.per_shard.values())
        return total if known else None
