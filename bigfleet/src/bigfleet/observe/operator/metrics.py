"""`OperatorMetrics`: one object that all parts of an operator write to."""

from __future__ import annotations

from collections.abc import Callable

from bigfleet.observe.kubecalls import KubeCalls
from bigfleet.observe.metrics import Common, Instruments
from bigfleet.observe.operator.demanding import Demanding
from bigfleet.observe.operator.writing import Writing

PREFIX = "bigfleet_operator_"


class OperatorMetrics(Demanding, Writing, KubeCalls):
    """The catalogue of an operator. `now` is monotonic seconds, for ages computed at a scrape."""

    def __init__(self, now: Callable[[], float], *, version: str, revision: str = "") -> None:
        make = Instruments(PREFIX)
        self.registry = make.registry
        self.common = Common(make.registry, "operator", version, revision)
        Demanding.__init__(self, make, now)
        Writing.__init__(self, make)
        KubeCalls.__init__(self, make, timed=True)

    def watch_restarted(self, resource: str, reason: str) -> None:
        """Watches are the pod controller's metric; here the calls themselves tell of it."""

    def tls_expiry(self, role: str, unix_seconds: float) -> None:
        """When a certificate in use ends; `role` is client or ca."""
        self.common.tls_expiry(role, unix_seconds)
