"""`ShardMetrics`: one object that all parts of a shard write to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bigfleet.decision import Plan, Policy
from bigfleet.model import MachineState
from bigfleet.observe.metrics import Common, Instruments
from bigfleet.observe.shard.attending import Attending
from bigfleet.observe.shard.deciding import Deciding
from bigfleet.observe.shard.executing import Executing
from bigfleet.observe.shard.fleet import Decided, FleetCollector, ShortfallCounts
from bigfleet.observe.shard.reconciling import Reconciling

PREFIX = "bigfleet_shard_"


class ShardMetrics(Deciding, Executing, Reconciling, Attending):
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
        self.common = Common(make.registry, "shard", version, revision)
        Deciding.__init__(self, make, warmup_cycles)
        Executing.__init__(self, make)
        Reconciling.__init__(self, make, now)
        Attending.__init__(self, make, now)
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
        self._fleet.decided(Decided(plan, policy, now, shortfalls, oldest, phantoms or {}))

    def tls_expiry(self, role: str, unix_seconds: float) -> None:
        """When a certificate in use ends; `role` is server, client or ca."""
        self.common.tls_expiry(role, unix_seconds)
