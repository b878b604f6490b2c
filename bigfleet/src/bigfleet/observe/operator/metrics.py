"""`OperatorMetrics`: one object that all parts of an operator write to."""

from __future__ import annotations

from collections.abc import Callable

from bigfleet.observe.kubecalls import KubeCalls
from bigfleet.observe.metrics import CommonMetrics, Instruments
from bigfleet.observe.operator.demand_metrics import DemandMetrics
from bigfleet.observe.operator.write_metrics import WriteMetrics

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
