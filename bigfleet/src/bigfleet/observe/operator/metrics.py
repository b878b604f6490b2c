"""`OperatorMetrics`: one object that all parts of an operator write to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bigfleet.observe.distribution import MEDIUM
from bigfleet.observe.kubecalls import KubeCalls
from bigfleet.observe.metrics import CommonMetrics, Instruments

# What is written into the cluster: UpcomingNodes, bootstrap data, drains and evictions.

PHASES: Final = (
    "Provisioning", "Launched", "Registered", "Ready", "Draining", "Drained", "Failed",
)  # fmt: skip
OPS: Final = ("create", "spec_update", "status_update", "delete")
WRITE_OUTCOMES: Final = ("success", "conflict", "error", "noop")
BOOTSTRAP_OUTCOMES: Final = ("success", "unsatisfiable", "error")
DRAIN_OUTCOMES: Final = ("drained", "deadline", "node_gone", "cancelled")
EVICTION_OUTCOMES: Final = ("success", "blocked", "gone", "error")


class WriteMetrics:
    """Written by what acts in the cluster."""

    def __init__(self, make: Instruments) -> None:
        self._state_seconds = make.histogram(
            "node_state_update_duration_seconds",
            "NodeStateUpdate received until the UpcomingNode is written.",
            MEDIUM,
            phase=PHASES,
        )
        self._writes = make.counter(
            "upcoming_node_writes_total",
            "Writes of UpcomingNodes.",
            op=OPS,
            outcome=WRITE_OUTCOMES,
        )
        self._write_seconds = make.histogram(
            "upcoming_node_op_duration_seconds", "Writes of UpcomingNodes.", MEDIUM, op=OPS
        )
        self._phantoms = make.gauge(
            "phantom_nodes",
            "UpcomingNodes Ready for over 60 s whose Node is missing or not Ready.",
        )
        self._bootstrap = make.counter(
            "bootstrap_requests_total", "Bootstrap data asked for.", outcome=BOOTSTRAP_OUTCOMES
        )
        self._drains = make.counter("drains_total", "Ended drains.", outcome=DRAIN_OUTCOMES)
        self._evictions = make.counter(
            "evictions_total", "Evictions asked for.", outcome=EVICTION_OUTCOMES
        )

    def node_state_updated(self, phase: str, seconds: float) -> None:
        """From a frame to what it led to."""
        self._state_seconds.labels(phase).observe(seconds)

    def upcoming_node_written(self, op: str, outcome: str, seconds: float) -> None:
        """One write ended."""
        self._writes.labels(op, outcome).inc()
        if outcome != "noop":
            self._write_seconds.labels(op).observe(seconds)

    def phantom_nodes(self, count: int) -> None:
        """Machines that should be Ready nodes and are not."""
        self._phantoms.set(count)

    def bootstrap_answered(self, outcome: str) -> None:
        """success, unsatisfiable or error."""
        self._bootstrap.labels(outcome).inc()

    def drained(self, outcome: str) -> None:
        """The drain of a node ended."""
        self._drains.labels(outcome).inc()

    def evicted(self, outcome: str) -> None:
        """An eviction was answered."""
        self._evictions.labels(outcome).inc()


# Demand on its way to the shard: roll-ups, acknowledgements, the session.
#
# A replica that stands by has no session and should have none. It says nothing of it, so that an
# alert for who has none speaks of the one that acts.

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


PREFIX = "bigfleet_operator_"


class OperatorMetrics(DemandMetrics, WriteMetrics, KubeCalls):
    """The catalogue of an operator. `now` is monotonic seconds, for ages computed at a scrape."""

    def __init__(self, now: Callable[[], float], *, version: str, revision: str = "") -> None:
        make = Instruments(PREFIX)
        self.registry = make.registry
        self.common = CommonMetrics(make.registry, "operator", version, revision)
        DemandMetrics.__init__(self, make, now)
        WriteMetrics.__init__(self, make)
        KubeCalls.__init__(self, make, timed=True)

    def watch_restarted(self, resource: str, reason: str) -> None:
        """Watches are the pod controller's metric; here the calls themselves tell of it."""

    def tls_expiry(self, role: str, unix_seconds: float) -> None:
        """When a certificate in use ends; `role` is client or ca."""
        self.common.tls_expiry(role, unix_seconds)
