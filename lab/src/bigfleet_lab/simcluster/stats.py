"""What happened to simulated clusters: plain counts, and how long acknowledgements took."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

_KEPT: Final = 100_000
"""Latencies kept, the newest."""


@dataclass(slots=True)
class Stats:
    """Counts of one run; one object may serve many clusters."""

    sessions_opened: int = 0
    sessions_ended: Counter[str] = field(default_factory=Counter)
    """By status."""
    rollups_sent: int = 0
    rows_sent: int = 0
    rollups_acknowledged: int = 0
    rollups_held: int = 0
    rollups_rejected: int = 0
    rejection: str = ""
    """The shard's last reason."""
    bootstraps_asked: int = 0
    bootstraps_answered: int = 0
    bootstraps_refused: int = 0
    reclaims: int = 0
    reclaim_cancels: int = 0
    node_updates: int = 0
    capacity_hints: int = 0
    verdicts: int = 0
    observations: int = 0
    answers_dropped: int = 0
    """Answers that found the outbox full."""
    garbage_sent: int = 0
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """Seconds from roll-up to its acknowledgement."""
    rollup_seconds: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """Seconds that making a roll-up took."""

    def latency(self, share: float) -> float | None:
        """The latency below which this share of roll-ups was acknowledged."""
        return percentile(self.latencies, share)


def percentile(numbers: Iterable[float], share: float) -> float | None:
    """The smallest number that at least this share of the numbers does not exceed."""
    ordered = sorted(numbers)
    if not ordered:
        return None
    place = -(-share * len(ordered) // 1)
    return ordered[min(len(ordered), max(1, int(place))) - 1]
