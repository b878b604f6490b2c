"""Roll-ups that suddenly ask for almost nothing are held until they are repeated.

An operator that lost its caches, or a cluster whose API server answers with half the truth, says
"nothing" and means "I do not know". So a roll-up that keeps too little of the last accepted one is
held; it is believed when enough of them in a row say so for long enough. After a restart no part
remembers a predecessor, and what the cluster is bound to stands in for it; as long as a provider
has not said what it has, only what is believed becomes a predecessor.

This is the rule and its memory; acknowledging, counting and logging are left to `rollups`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from bigfleet.shard.demand.ingest import RollUp


@dataclass(frozen=True, slots=True)
class QuarantineSettings:
    """Limits. A `fraction` of zero holds nothing."""

    fraction: float = 0.10
    """What a roll-up must keep, of rows and of resources."""
    rows: int = 10
    """Rows are compared when there were at least so many."""
    consecutive: int = 3
    """The so-manieth in a row may be believed ..."""
    seconds: float = 60.0
    """... when the first is at least so old."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is asked for: rows, and units per resource."""

    rows: int
    resources: Mapping[str, float]


class QuarantineVerdict(Enum):
    """What becomes of a roll-up."""

    NORMAL = "normal"
    HELD = "held"
    BELIEVED = "believed"
    """As small as those held before it, and now taken."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and what it rests on."""

    verdict: QuarantineVerdict
    rows: int
    baseline: int
    """Rows of what it was compared with; 0 for bound capacity."""
    consecutive: int = 0


@dataclass(frozen=True, slots=True)
class _Suspicion:
    count: int
    since: float


Bound = Callable[[str], Mapping[str, float]]
"""What a cluster's bound machines offer, as far as they are known, in units per resource."""


class Quarantine:
    """Judges the roll-ups of all clusters. Times are seconds of a clock that only grows."""

    def __init__(
        self,
        bound: Bound,
        settings: QuarantineSettings | None = None,
        are_all_known: Callable[[], bool] = lambda: True,
    ) -> None:
        """`are_all_known` tells whether every provider has said which machines it has."""
        self._bound = bound
        self._are_all_known = are_all_known
        self._settings = settings or QuarantineSettings()
        self._accepted: dict[str, Size] = {}
        self._suspicions: dict[str, _Suspicion] = {}

    def judge(self, cluster: str, rollup: RollUp, now: float) -> Judgement:
        """What becomes of a roll-up; one that is not held is what the next is compared with."""
        size = Size(len(rollup), rollup.aggregate.totals())
        known = self._accepted.get(cluster)
        is_sure = known is not None or self._are_all_known()
        baseline = known or Size(0, self._bound(cluster))
        # An empty roll-up loses nothing by waiting until there is something to compare it with.
        says_nothing = bool(self._settings.fraction) and not is_sure and not size.rows
        if not says_nothing and not is_suspicious(size, baseline, self._settings):
            self._suspicions.pop(cluster, None)
            if is_sure:
                self._accepted[cluster] = size
            return Judgement(QuarantineVerdict.NORMAL, size.rows, baseline.rows)
        before = self._suspicions.get(cluster)
        count, since = (1, now) if before is None else (before.count + 1, before.since)
        long_enough = now - since >= self._settings.seconds
        if count >= self._settings.consecutive and long_enough:
            self._suspicions.pop(cluster, None)
            self._accepted[cluster] = size
            return Judgement(QuarantineVerdict.BELIEVED, size.rows, baseline.rows, count)
        self._suspicions[cluster] = _Suspicion(count, since)
        return Judgement(QuarantineVerdict.HELD, size.rows, baseline.rows, count)

    def forget(self, cluster: str) -> None:
        """A cluster is gone for good."""
        self._accepted.pop(cluster, None)
        self._suspicions.pop(cluster, None)


def is_suspicious(size: Size, baseline: Size, settings: QuarantineSettings) -> bool:
    """Whether so little is kept of the baseline that it may be a mistake.

    Rows count by their number, since a cluster may well ask for all the same in other words. Of
    resources, all that were demanded must be nearly gone: the end of a job that alone used some
    kind of them does not justify holding what all others ask for.
    """
    fraction = settings.fraction
    if not fraction:
        return False
    if baseline.rows >= settings.rows and size.rows < fraction * baseline.rows:
        return True
    demanded = [(name, amount) for name, amount in baseline.resources.items() if amount > 0]
    return bool(demanded) and all(
        size.resources.get(name, 0.0) < fraction * amount for name, amount in demanded
    )
