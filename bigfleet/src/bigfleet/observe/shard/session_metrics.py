"""Operator sessions with their roll-ups, and the coordinator.

The age of roll-ups is computed when it is asked for, over all clusters the shard knows; one that
never sent any counts from when it became known. Series that name a cluster go an hour after the
cluster went.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from bigfleet.observe.distribution import MEDIUM
from bigfleet.observe.metrics import OPEN, Instruments

LIMITS: Final = ("rows", "requirement_sets", "bytes")
EVENTS: Final = ("installed", "removed", "replaced")
STATS: Final = ("p50", "p95", "max")
REPORTS: Final = ("success", "not_leader", "error")
INSTRUCTIONS: Final = (
    "assign_domain", "unassign_domain", "reassign_speculative", "cross_shard_drain",
    "transfer_ownership",
)  # fmt: skip
INSTRUCTION_OUTCOMES: Final = ("done", "failed", "stale_term", "duplicate")
DIRECTIONS: Final = ("in", "out")
STALE_SECONDS: Final = 60.0
KEPT_NS: Final = 3600 * 10**9
_NS: Final = 1e9


class SessionSeries:
    """Written by sessions and by the coordinator's client."""

    def __init__(self, make: Instruments, now: Callable[[], int]) -> None:
        self._clock_ns = now
        self._sessions = make.gauge("active_sessions", "Open operator sessions.")
        self._lifecycle = make.counter("session_lifecycle_total", "Sessions.", event=EVENTS)
        self._strangers = make.counter(
            "session_identity_rejected_total", "Certificate and cluster id differ."
        )
        self._accepted = make.counter("rollups_accepted_total", "Accepted roll-ups.")
        self._rejected = make.counter(
            "rollups_rejected_total", "Roll-ups refused whole.", cluster=OPEN
        )
        self._over = make.counter(
            "rollups_over_limit_total",
            "Roll-ups refused because they are beyond a limit of their cluster.",
            cluster=OPEN,
            limit=LIMITS,
        )
        self._ingest = make.histogram(
            "rollup_ingest_seconds", "Decode, validate and compare one roll-up.", MEDIUM
        )
        self._quarantined = make.gauge(
            "rollup_quarantined", "The newest roll-up is held back.", cluster=OPEN
        )
        ages = make.gauge("rollup_age_seconds", "Age of the last accepted roll-up.", stat=STATS)
        for stat, share in zip(STATS, (0.5, 0.95, 1.0), strict=True):
            ages.labels(stat).set_function(partial(self._age_at, share))
        make.gauge("clusters_stale", "Clusters silent for more than 60 s.").set_function(
            lambda: float(sum(age > STALE_SECONDS for age in self._ages()))
        )
        self._reports = make.counter("coordinator_report_total", "Reports.", outcome=REPORTS)
        make.gauge("coordinator_report_age_seconds", "Since the last accepted one.").set_function(
            lambda: 0.0 if self._reported is None else self._since(self._reported)
        )
        self._term = make.gauge("coordinator_term", "Highest term seen.")
        self._instructions = make.counter(
            "instructions_total",
            "Instructions of the coordinator.",
            kind=INSTRUCTIONS,
            outcome=INSTRUCTION_OUTCOMES,
        )
        self._transferred = make.counter(
            "machines_transferred_total", "Machines whose owner changed.", direction=DIRECTIONS
        )
        self._arrived_at: dict[str, int] = {}
        self._labelled: set[str] = set()
        self._gone: dict[str, int] = {}
        self._reported: int | None = None

    # -- sessions --------------------------------------------------------------------------------

    def session_event(self, event: str, active: int) -> None:
        """A session was installed, removed or replaced; so many are open now."""
        self._lifecycle.labels(event).inc()
        self._sessions.set(active)

    def session_identity_rejected(self) -> None:
        """A certificate claimed another cluster's id."""
        self._strangers.inc()

    def rollup_accepted(self, cluster: str) -> None:
        """A roll-up became the cluster's demand."""
        self._accepted.inc()
        self._arrived_at[cluster] = self._clock_ns()

    def rollup_rejected(self, cluster: str) -> None:
        """A roll-up was refused whole."""
        self._labelled.add(cluster)
        self._rejected.labels(cluster).inc()

    def rollup_over_limit(self, cluster: str, limit: str) -> None:
        """A roll-up was refused because it is beyond this limit."""
        self._labelled.add(cluster)
        self._over.labels(cluster, limit).inc()

    def rollup_ingest(self, seconds: float) -> None:
        """Reading one roll-up took so long."""
        self._ingest.observe(seconds)

    def rollup_quarantined(self, cluster: str, held: bool) -> None:
        """Whether the cluster's newest roll-up is held back."""
        if held or cluster in self._labelled:
            self._labelled.add(cluster)
            self._quarantined.labels(cluster).set(held)

    def clusters(self, known: Collection[str]) -> None:
        """The clusters with a session or demand; once per cycle. Series of others age and go."""
        now, there = self._clock_ns(), set(known)
        for cluster in there - self._arrived_at.keys():
            self._arrived_at[cluster] = now
        for cluster in self._arrived_at.keys() - there:
            del self._arrived_at[cluster]
        for cluster in self._labelled:
            if cluster in there:
                self._gone.pop(cluster, None)
            else:
                self._gone.setdefault(cluster, now)
        for cluster in [c for c, since in self._gone.items() if now - since >= KEPT_NS]:
            del self._gone[cluster]
            self._labelled.discard(cluster)
            for made in (self._rejected, self._quarantined):
                made.remove(cluster)
            for limit in LIMITS:
                self._over.remove(cluster, limit)

    def _ages(self) -> list[float]:
        # One step of the interpreter, so a roll-up that comes meanwhile cannot be in the way.
        return sorted(self._since(arrived) for arrived in tuple(self._arrived_at.values()))

    def _age_at(self, share: float) -> float:
        ages = self._ages()
        return ages[math.ceil(share * len(ages)) - 1] if ages else 0.0

    # -- coordinator -----------------------------------------------------------------------------

    def coordinator_expected(self) -> None:
        """There is a coordinator to report to: the age counts from now on."""
        self._reported = self._clock_ns()

    def coordinator_report(self, outcome: str) -> None:
        """A report ended: `success`, `not_leader` or `error`."""
        self._reports.labels(outcome).inc()
        if outcome == "success":
            self._reported = self._clock_ns()

    def coordinator_term(self, term: int) -> None:
        """The highest term seen."""
        self._term.set(term)

    def instruction(self, kind: str, outcome: str) -> None:
        """An instruction was dealt with."""
        self._instructions.labels(kind, outcome).inc()

    def machines_transferred(self, direction: str, count: int) -> None:
        """Machines came `in` or went `out`."""
        self._transferred.labels(direction).inc(count)

    def _since(self, moment: int) -> float:
        return max(0.0, (self._clock_ns() - moment) / _NS)
