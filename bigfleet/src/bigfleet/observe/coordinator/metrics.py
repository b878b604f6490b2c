"""`CoordinatorMetrics`: one object that all parts of a coordinator write to."""

from __future__ import annotations

from collections.abc import Callable

from bigfleet.observe.coordinator.request_metrics import RequestMetrics
from bigfleet.observe.coordinator.store_metrics import StoreMetrics
from bigfleet.observe.metrics import CommonMetrics, Instruments

PREFIX = "bigfleet_coordinator_"


class CoordinatorMetrics(StoreMetrics, RequestMetrics):
    """The catalogue of a coordinator. `now` is Unix nanoseconds, for ages computed at a scrape.

    `registry` is what its port serves; nothing of another component is in it.
    """

    def __init__(self, now: Callable[[], int], *, version: str, revision: str = "") -> None:
        make = Instruments(PREFIX)
        self.registry = make.registry
        self.common = CommonMetrics(make.registry, "coordinator", version, revision)
        StoreMetrics.__init__(self, make, now)
        RequestMetrics.__init__(self, make, now)

    def tls_expiry(self, role: str, unix_seconds: float) -> None:
        """When a certificate in use ends; `role` is server, client or ca."""
        self.common.tls_expiry(role, unix_seconds)
