"""How long clusters wait for the first machine of something they had not asked for before.

The clock of a (cluster, profile) starts with the first accepted roll-up that asks for it and stops
when a machine becomes Configured for it. What the machines that are there already serve, after a
restart everything, waits for nothing and is not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from bigfleet.model import Machine, MachineState
from bigfleet.observe.process import Clock
from bigfleet.shard.demand.cluster_rows import RowChanges
from bigfleet.shard.machines.orders import Order

Asking = tuple[str, str]
"""A cluster and the fingerprint of a profile."""


class ProvisioningLatency:
    """What is waited for. `observe` is told of every wait that ended, in seconds."""

    def __init__(self, clock: Clock, observe: Callable[[float], None]) -> None:
        self._clock = clock
        self._observe = observe
        self._since: dict[Asking, tuple[float, int]] = {}
        """Since when by the monotonic clock, and in Unix nanoseconds."""
        self._ordered: set[Asking] = set()
        """For which a machine is on its way, or was."""

    def __len__(self) -> int:
        return len(self._since)

    def rolled_up(self, cluster: str, _timestamp: int, changes: RowChanges, came: int) -> None:
        """A roll-up was taken."""
        for fingerprint, _, _ in changes.removed:
            self._end((cluster, fingerprint))
        now = self._clock.monotonic()
        for fingerprint, _, _ in changes.added:
            self._since.setdefault((cluster, fingerprint), (now, came))

    def decided(
        self, orders: Iterable[Order], unmet: Collection[Asking], read_unix_ns: int
    ) -> None:
        """A cycle that read its demand then gave these orders and left these unmet."""
        if not self._since:
            return
        stamps = (order.stamp for order in orders if order.stamp is not None)
        ordered = {(stamp.cluster, stamp.fingerprint) for stamp in stamps}
        self._ordered |= ordered & self._since.keys()
        for asking, (_, came) in list(self._since.items()):
            if came < read_unix_ns and asking not in self._ordered and asking not in unmet:
                self._end(asking)

    def changed(self, before: Machine | None, after: Machine | None) -> None:
        """A machine changed, came or went."""
        if before is None or after is None or after.stamp is None or not self._since:
            return
        if after.state is not MachineState.CONFIGURED or before.state is after.state:
            return
        since = self._end((after.stamp.cluster, after.stamp.fingerprint))
        if since is not None:
            self._observe(self._clock.monotonic() - since)

    def _end(self, asking: Asking) -> float | None:
        self._ordered.discard(asking)
        known = self._since.pop(asking, None)
        return None if known is None else known[0]
