"""What one cycle leaves for the next: goes in and comes out as one value.

The engine keeps nothing itself. What happened between two cycles (a Create that failed for lack of
capacity, a drain that took its time) is worked into the carry by the functions here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bigfleet.decision.policy import SECOND
from bigfleet.model.columns import Offering

I64 = npt.NDArray[np.int64]
K = TypeVar("K")
FoldKey = tuple[int, int, tuple[int, ...]]
"""Cluster, profile without Same, and one member's amounts."""

COOLING_FIRST = 30 * SECOND
COOLING_MOST = 600 * SECOND
BOOTSTRAP_FIRST = 10 * SECOND
BOOTSTRAP_MOST = 600 * SECOND
_DRAIN_WEIGHT = 0.3
"""Weight of the newest drain time; three drains make two thirds of the estimate."""


@dataclass(frozen=True, slots=True)
class BackOff:
    """Out until a time; the next wait doubles."""

    until: int
    wait: int

    def holds(self, now: int) -> bool:
        """Whether it is in force. A clock that went back to before it began ends it: it would last
        for as long as the clock was wrong."""
        return self.until - self.wait <= now < self.until


def _none() -> I64:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class ClockSet:
    """The clock was set by `by`, some time after what is `since` on it now."""

    by: int
    since: int
    now: int

    def moved(self, times: I64) -> I64:
        """Times at which something began, 0 where it did not, on the clock as it is now."""
        # What was noted after the clock was set lies between; by the old one, hardly anything does.
        before = (times > 0) & ((times < self.since) | (times > self.now))
        return np.where(before, np.clip(times + self.by, 1, self.now), times)


@dataclass(frozen=True)
class Carry:
    """The state between cycles. Rows are machine rows, identities those of the shard's symbols."""

    last_sequence: int = 0
    unclaimed_since: I64 = field(default_factory=_none)
    """Per machine row: since when no row claims it; 0 for claimed."""
    unmet_since: I64 = field(default_factory=_none)
    """Per identity: since when its need is unmet; 0 for met."""
    homeless_since: I64 = field(default_factory=_none)
    """Per identity: since when its gang finds no covering domain; 0 for never."""
    folds: Mapping[FoldKey, tuple[int, int]] = field(default_factory=dict)
    """Per folded row: how many members it had, and the sequence number at which it last shrank."""
    stock_outs: Mapping[Offering, BackOff] = field(default_factory=dict)
    bootstraps: Mapping[str, BackOff] = field(default_factory=dict)
    drain_seconds: Mapping[Offering, float] = field(default_factory=dict)
    frozen: frozenset[str] = frozenset()
    """Clusters that the last cycle left out."""

    def with_stock_out(self, offering: Offering, now: int) -> Carry:
        """A Create of this offering failed for lack of capacity: keep off it for a while."""
        grown = _grown(self.stock_outs, offering, now, COOLING_FIRST, COOLING_MOST)
        return replace(self, stock_outs=grown)

    def with_stock(self, offering: Offering) -> Carry:
        """A Create of this offering succeeded: the next stock-out starts from the shortest wait."""
        return replace(self, stock_outs=_without(self.stock_outs, offering))

    def with_bootstrap_failure(self, cluster: str, now: int) -> Carry:
        """A cluster could not deliver bootstrap data: acquire nothing for it for a while."""
        grown = _grown(self.bootstraps, cluster, now, BOOTSTRAP_FIRST, BOOTSTRAP_MOST)
        return replace(self, bootstraps=grown)

    def with_bootstrap(self, cluster: str) -> Carry:
        """A cluster delivered bootstrap data again."""
        return replace(self, bootstraps=_without(self.bootstraps, cluster))

    def with_drain(self, offering: Offering, seconds: float) -> Carry:
        """A drain of this offering took so long; later ones weigh more."""
        known = self.drain_seconds.get(offering, seconds)
        smoothed = known + _DRAIN_WEIGHT * (seconds - known)
        return replace(self, drain_seconds={**self.drain_seconds, offering: smoothed})

    def moved(self, clock: ClockSet) -> Carry:
        """With a clock that was set: nothing is older or younger for that."""
        return replace(
            self,
            unclaimed_since=clock.moved(self.unclaimed_since),
            unmet_since=clock.moved(self.unmet_since),
            homeless_since=clock.moved(self.homeless_since),
            stock_outs=_moved(self.stock_outs, clock),
            bootstraps=_moved(self.bootstraps, clock),
        )

    def cooling(self, now: int) -> frozenset[Offering]:
        """Offerings that are out of the pool now."""
        return frozenset(o for o, b in self.stock_outs.items() if b.holds(now))

    def backed_off(self, now: int) -> frozenset[str]:
        """Clusters in bootstrap back-off now."""
        return frozenset(c for c, b in self.bootstraps.items() if b.holds(now))


def _moved(waits: Mapping[K, BackOff], clock: ClockSet) -> dict[K, BackOff]:
    began = clock.moved(np.array([w.until - w.wait for w in waits.values()], np.int64)).tolist()
    return {
        k: BackOff(at + w.wait, w.wait) for at, (k, w) in zip(began, waits.items(), strict=True)
    }


def _grown(waits: Mapping[K, BackOff], key: K, now: int, first: int, most: int) -> dict[K, BackOff]:
    known = waits.get(key)
    wait = first if known is None else min(2 * known.wait, most)
    return {**waits, key: BackOff(now + wait, wait)}


def _without(waits: Mapping[K, BackOff], key: K) -> dict[K, BackOff]:
    return {k: v for k, v in waits.items() if k != key}
