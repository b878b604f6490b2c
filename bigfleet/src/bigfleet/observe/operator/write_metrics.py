"""What is written into the cluster: UpcomingNodes, bootstrap data, drains and evictions."""

from __future__ import annotations

from typing import Final

from bigfleet.observe.buckets import MEDIUM
from bigfleet.observe.metrics import Instruments

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
