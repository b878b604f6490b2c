"""The watchdog: a decision that takes too long is discarded as a whole, and the next leaves out
what was heaviest.

The work budget (`bigfleet.decision.work_budget`) keeps decisions short by counting; the watchdog is
for what the counts did not foresee. It never shortens a decision, so a plan depends on the clock
only in that it exists or not: which clusters are left out after a discard is an input of the next
decision, visible in its plan. A cluster comes back when it asks for half of what it did, or after
a while, which doubles each time it is left out again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bigfleet.decision.work_budget import heaviest_first
from bigfleet.observe.process import Clock

MOST_SECONDS: Final = 20.0
"""Five times what the slowest fleet of the benchmarks takes."""
FIRST_HOLD_SECONDS: Final = 600.0
LONGEST_HOLD_SECONDS: Final = 4 * 3600.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Hold:
    """One cluster that is left out."""

    until: float
    seconds: float
    work: int
    """What it weighed when it was left out."""


class DecisionWatchdog:
    """Which clusters are left out because decisions with them did not end in time."""

    def __init__(self, clock: Clock, seconds: float = MOST_SECONDS) -> None:
        self._clock = clock
        self.seconds = seconds
        """How long a decision may take."""
        self.discarded = 0
        """Decisions so far."""
        self._holds: dict[str, _Hold] = {}

    def __bool__(self) -> bool:
        """Whether anything is held, for which weights have to be known."""
        return bool(self._holds)

    def frozen(self, weights: Mapping[str, int]) -> frozenset[str]:
        """The clusters that the next decision leaves out, by what each weighs now."""
        now = self._clock.monotonic()
        return frozenset(
            cluster
            for cluster, hold in self._holds.items()
            if now < hold.until and weights.get(cluster, 0) > hold.work // 2
        )

    def forget(self, cluster: str) -> None:
        """A cluster is gone for good."""
        self._holds.pop(cluster, None)

    def discard(self, weights: Mapping[str, int]) -> frozenset[str]:
        """A decision took too long: the heaviest clusters, half of all work, are left out next."""
        self.discarded += 1
        now, already = self._clock.monotonic(), self.frozen(weights)
        left = {cluster: work for cluster, work in weights.items() if cluster not in already}
        half, out = sum(left.values()) // 2, set[str]()
        for cluster in heaviest_first(left):
            if out and sum(left[one] for one in out) >= half:
                break
            out.add(cluster)
            before = self._holds.get(cluster)
            seconds = FIRST_HOLD_SECONDS if before is None else 2 * before.seconds
            seconds = min(seconds, LONGEST_HOLD_SECONDS)
            self._holds[cluster] = _Hold(now + seconds, seconds, left[cluster])
        _log.error(
            "decision discarded: it took too long. The heaviest clusters are left out of the next "
            "decisions; they keep their machines and get none",
            extra={"limit_seconds": self.seconds, "clusters": sorted(out)[:20], "count": len(out)},
        )
        return already | out
