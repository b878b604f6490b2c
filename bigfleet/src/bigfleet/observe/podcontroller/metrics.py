"""`PodControllerMetrics`: one object that all parts of a pod controller write to."""

from __future__ import annotations

from typing import Final

from bigfleet.observe.distribution import MEDIUM
from bigfleet.observe.kubecalls import KubeCalls
from bigfleet.observe.metrics import CommonMetrics, Instruments

PREFIX: Final = "bigfleet_unschedulable_pod_controller_"
OUTCOMES: Final = (
    "cr_created", "cr_exists", "cr_updated", "pod_gone", "pod_terminal", "pod_skipped",
    "pod_unsupported", "error",
)  # fmt: skip
RESTARTS: Final = ("expired", "closed", "error")


class PodControllerMetrics(KubeCalls):
    """The catalogue of a pod controller."""

    def __init__(self, *, version: str, revision: str = "") -> None:
        make = Instruments(PREFIX)
        self.registry = make.registry
        self.common = CommonMetrics(make.registry, "pod-controller", version, revision)
        KubeCalls.__init__(self, make, timed=False)
        self._reconciles = make.counter(
            "reconciles_total", "Pods looked at, by what came of it.", outcome=OUTCOMES
        )
        self._seconds = make.histogram("reconcile_duration_seconds", "Looking at one Pod.", MEDIUM)
        self._depth = make.gauge("queue_depth", "Pods waiting to be looked at.")
        self._restarts = make.counter(
            "watch_restarts_total", "Watches that were started again.", reason=RESTARTS
        )

    def reconciled(self, outcome: str, seconds: float) -> None:
        """A Pod was looked at."""
        self._reconciles.labels(outcome).inc()
        self._seconds.observe(seconds)

    def queue(self, depth: int) -> None:
        """So many Pods wait."""
        self._depth.set(depth)

    def watch_restarted(self, resource: str, reason: str) -> None:
        """A watch began again: expired, closed or error."""
        self._restarts.labels(reason).inc()
