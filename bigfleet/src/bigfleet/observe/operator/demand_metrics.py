"""Demand on its way to the shard: roll-ups, acknowledgements, the session.

A replica that stands by has no session and should have none. It says nothing of it, so that an
alert for who has none speaks of the one that acts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bigfleet.observe.buckets import MEDIUM
from bigfleet.observe.metrics import Instruments

ROLLUP_PHASES: Final = ("list", "build", "enqueue")
REQUEST_PHASES: Final = ("Pending", "Acknowledged")
SKIPPED: Final = ("bad_operator", "bad_quantity")


class DemandMetrics:
    """Written by roll-ups and the session. `now` is monotonic seconds."""

    def __init__(self, make: Instruments, now: Callable[[], float]) -> None:
        self._now = now
        self._is_connected = False
        self._stands_by: Callable[[], bool] = lambda: False
        self._rollup_seconds = make.histogram(
            "rollup_duration_seconds", "List, build and enqueue of one roll-up.", MEDIUM
        )
        self._rollup_phases = make.histogram(
            "rollup_phase_duration_seconds", "Parts of a roll-up.", MEDIUM, phase=ROLLUP_PHASES
        )
        self._taken_at = now()
        make.gauge_of(
            "rollup_age_seconds",
            "Since the shard last acknowledged a roll-up; absent where another replica leads.",
            lambda: None if self._stands_by() else self._now() - self._taken_at,
        )
        self._rows = make.gauge("rollup_rows", "Rows of the last roll-up.")
        self._bytes = make.gauge("rollup_bytes", "Size of the last roll-up.")
        self._ack_seconds = make.histogram(
            "acknowledge_duration_seconds", "One batch of acknowledgements.", MEDIUM
        )
        self._acknowledged = make.counter(
            "acknowledged_total", "CapacityRequests moved from Pending to Acknowledged."
        )
        self._requests = make.gauge(
            "capacity_requests", "CapacityRequests by phase.", phase=REQUEST_PHASES
        )
        self._skipped = make.counter(
            "capacity_requests_skipped_total",
            "Requests a roll-up could not carry.",
            reason=SKIPPED,
        )
        make.gauge_of(
            "session_connected",
            "The session to the shard is open; absent where another replica leads.",
            lambda: None if self._stands_by() else float(self._is_connected),
        )
        self._reconnects = make.counter("session_reconnects_total", "Sessions begun again.")
        self._dropped = make.counter(
            "outbox_dropped_total", "Messages to the shard lost to a full queue."
        )
        self._inflight = make.gauge("dispatch_inflight", "Shard messages being handled.")

    def rolled_up(self, phases: dict[str, float], rows: int, size: int) -> None:
        """A roll-up was sent; seconds by phase."""
        self._rollup_seconds.observe(sum(phases.values()))
        for phase, seconds in phases.items():
            self._rollup_phases.labels(phase).observe(seconds)
        self._rows.set(rows)
        self._bytes.set(size)

    def rollup_taken(self) -> None:
        """The shard acknowledged a roll-up."""
        self._taken_at = self._now()

    def acknowledged(self, count: int, seconds: float) -> None:
        """A batch of requests was told."""
        self._acknowledged.inc(count)
        self._ack_seconds.observe(seconds)

    def requests(self, pending: int, acknowledged: int) -> None:
        self._requests.labels("Pending").set(pending)
        self._requests.labels("Acknowledged").set(acknowledged)

    def request_skipped(self, reason: str) -> None:
        """A request cannot be carried."""
        self._skipped.labels(reason).inc()

    def session(self, *, connected: bool) -> None:
        """Whether the session is open."""
        self._is_connected = connected

    def standing_by(self, stands_by: Callable[[], bool]) -> None:
        """How to know whether another replica acts; asked at each scrape, from its thread."""
        self._stands_by = stands_by

    def session_again(self) -> None:
        """Another attempt after a session ended."""
        self._reconnects.inc()

    def answer_dropped(self) -> None:
        """The outbox was full."""
        self._dropped.inc()

    def dispatching(self, count: int) -> None:
        """So many frames of the shard are being handled."""
        self._inflight.set(count)
