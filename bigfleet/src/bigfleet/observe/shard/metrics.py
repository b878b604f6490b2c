"""`ShardMetrics`: one object that all parts of a shard write to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bigfleet.decision import Plan, Policy
from bigfleet.model import MachineState
from bigfleet.observe.metrics import CommonMetrics, Instruments
from bigfleet.observe.shard.action_metrics import ActionMetrics
from bigfleet.observe.shard.cycle_metrics import CycleMetrics
from bigfleet.observe.shard.fleet import FleetCollector, LastDecision, ShortfallCounts
from bigfleet.observe.shard.provider_metrics import ProviderMetrics
from bigfleet.observe.shard.session_metrics import SessionSeries

PREFIX = "bigfleet_shard_"


class ShardMetrics(CycleMetrics, ActionMetrics, ProviderMetrics, SessionSeries):
    """The catalogue of a shard. `now` is nanoseconds that only grow, for ages at a scrape.

    `registry` is what its port serves; nothing of another component is in it.
    """

    def __init__(
        self,
        now: Callable[[], int],
        *,
        version: str,
        revision: str = "",
        warmup_cycles: int = 0,
    ) -> None:
        make = Instruments(PREFIX)
        self.registry = make.registry
        self.common = CommonMetrics(make.registry, "shard", version, revision)
        CycleMetrics.__init__(self, make, warmup_cycles)
        ActionMetrics.__init__(self, make)
        ProviderMetrics.__init__(self, make, now)
        SessionSeries.__init__(self, make, now)
        self._fleet = FleetCollector(PREFIX, now)
        make.registry.register(self._fleet)

    def decided(
        self,
        plan: Plan,
        policy: Policy,
        now: int,
        shortfalls: ShortfallCounts,
        oldest: Mapping[MachineState, int],
        phantoms: Mapping[str, int] | None = None,
    ) -> None:
        """The fleet gauges show this cycle from now on.

        `oldest` is since when the oldest machine of each moving state is in it; `phantoms` is what
        reconcile knows of `absent` and `state_conflict`.
        """
        self._fleet.decided(LastDecision(plan, policy, now, shortfalls, oldest, phantoms or {}))

    def tls_expiry(self, role: str, unix_seconds: float) -> None:
        """When a certificate in use ends; `role` is server, client or ca."""
        self.common.tls_expiry(role, unix_seconds)
