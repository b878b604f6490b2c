"""How actions ended, and how long machines took on their way."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter

from bigfleet.decision import ActionKind
from bigfleet.observe.distribution import LONG, MEDIUM
from bigfleet.observe.metrics import Instruments
from bigfleet.observe.shard.cycle_metrics import KINDS, kind_label

OUTCOMES: Final = (
    "success", "no_session", "blob_error", "provider_error", "fenced", "ctx_canceled",
    "transition_error", "transition_raced_to_idle", "stale_state", "inventory_miss",
    "missing_profile", "other",
)  # fmt: skip
CREATE_FAILURES: Final = ("out_of_capacity", "quota", "throttled", "bad_request", "unavailable")


class ActionMetrics:
    """Written by the executor and by reconcile, which sees how transitions end."""

    def __init__(self, make: Instruments) -> None:
        self._outcomes = make.counter(
            "action_execute_outcomes_total", "Ended actions.", kind=KINDS, outcome=OUTCOMES
        )
        self._ended: dict[tuple[ActionKind | str, str], Counter] = {}
        self._depth = make.gauge("action_queue_depth", "Waiting actions.")
        self._inflight = make.gauge("execute_inflight", "Running actions.")
        self._create_failures = make.counter(
            "create_failures_total", "Classified Create failures.", reason=CREATE_FAILURES
        )
        self._provisioning = make.histogram(
            "provisioning_latency_seconds", "First asked for until Configured.", LONG
        )
        self._bootstrap = make.histogram(
            "request_bootstrap_seconds", "Bootstrap blob asked for until received.", MEDIUM
        )
        self._configure = make.histogram(
            "configure_phase_seconds",
            "From the queue until Configure is taken.",
            MEDIUM,
        )
        self._join = make.histogram("join_phase_seconds", "Configure taken until Configured.", LONG)
        self._create = make.histogram("create_phase_seconds", "Create taken until Idle.", LONG)
        self._drain = make.histogram("drain_phase_seconds", "Drain started until Idle.", LONG)

    def action_ended(self, kind: ActionKind | str, outcome: str) -> None:
        """One action ended; an outcome outside the list counts as `other`."""
        series = self._ended.get((kind, outcome))
        if series is None:
            known = outcome if outcome in OUTCOMES else "other"
            series = self._ended[kind, outcome] = self._outcomes.labels(kind_label(kind), known)
        series.inc()

    def action_queue(self, depth: int, inflight: int) -> None:
        """Waiting and running actions now."""
        self._depth.set(depth)
        self._inflight.set(inflight)

    def create_failed(self, reason: str) -> None:
        self._create_failures.labels(reason).inc()

    def provisioned(self, seconds: float) -> None:
        """From the first roll-up that asked until a machine is Configured for it."""
        self._provisioning.observe(seconds)

    def bootstrap_received(self, seconds: float) -> None:
        """A bootstrap blob took so long."""
        self._bootstrap.observe(seconds)

    def configure_accepted(self, seconds: float) -> None:
        """From the queue until the provider took Configure."""
        self._configure.observe(seconds)

    def joined(self, seconds: float) -> None:
        """From Configure until Configured."""
        self._join.observe(seconds)

    def created(self, seconds: float) -> None:
        """From Create until Idle."""
        self._create.observe(seconds)

    def drained(self, seconds: float) -> None:
        """From Drain until Idle."""
        self._drain.observe(seconds)
