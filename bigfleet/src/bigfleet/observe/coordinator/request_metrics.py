"""Shards and what they are told, moves between them, and callers that were refused.

Series of a shard are there for every shard that is registered, on the leader alone: anybody else
has heard nothing and would show ages that only grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from bigfleet.observe.buckets import LONG, MEDIUM
from bigfleet.observe.metrics import OPEN, Instruments

TIERS: Final = ("idle", "quota", "preempt")
MOVED: Final = ("planned", "done", "abandoned")
SUPPRESSED: Final = ("cooldown", "no_donor", "donor_margin", "topology", "too_young")
SURFACES: Final = ("shard", "admin", "read")
_NS: Final = 1e9


class RequestMetrics:
    """Written by the service and by the rebalancer."""

    def __init__(self, make: Instruments, now: Callable[[], int]) -> None:
        self._wall = now
        self._pending = make.gauge(
            "pending_instructions", "Issued and not acknowledged.", shard=OPEN
        )
        self._age = make.gauge(
            "shard_report_age_seconds", "Since the shard's last report.", shard=OPEN
        )
        self._moves = make.counter(
            "rebalance_moves_total", "Cross-shard moves.", tier=TIERS, outcome=MOVED
        )
        self._machines = make.counter(
            "rebalance_machines_total", "Machines whose owner changed.", tier=TIERS
        )
        self._suppressed = make.counter(
            "rebalance_suppressed_total", "Shortfalls not acted on.", reason=SUPPRESSED
        )
        self._sweep = make.histogram("rebalance_sweep_duration_seconds", "One round.", MEDIUM)
        self._adoption = make.histogram(
            "rebalance_adoption_seconds", "Escalated shortfall until adopted.", LONG
        )
        self._refused = make.counter(
            "identity_rejected_total", "Callers refused by their certificate.", surface=SURFACES
        )
        self._undialled = make.counter(
            "addresses_refused_total", "Addresses of shards that cannot be dialled, not stored."
        )
        self._reported_at: dict[str, int] = {}

    # -- shards ----------------------------------------------------------------------------------

    def shards(self, registered: Iterable[str]) -> None:
        """These are registered: their series begin, those of others end."""
        there = set(registered)
        for shard in there - self._reported_at.keys():
            self._reported_at[shard] = self._wall()
            self._pending.labels(shard).set(0)
            self._age.labels(shard).set_function(lambda shard=shard: self._age_of(shard))  # type: ignore[misc]
        for shard in self._reported_at.keys() - there:
            del self._reported_at[shard]
            self._pending.remove(shard)
            self._age.remove(shard)

    def shard_reported(self, shard: str) -> None:
        """A report of a registered shard was taken."""
        if shard in self._reported_at:
            self._reported_at[shard] = self._wall()

    def pending_instructions(self, shard: str, count: int) -> None:
        """So many wait for an acknowledgement."""
        if shard in self._reported_at:
            self._pending.labels(shard).set(count)

    def _age_of(self, shard: str) -> float:
        since = self._reported_at.get(shard)
        return 0.0 if since is None else max(0.0, (self._wall() - since) / _NS)

    # -- moves -----------------------------------------------------------------------------------

    def move(self, tier: str, outcome: str) -> None:
        """A move was planned, done or abandoned."""
        self._moves.labels(tier, outcome).inc()

    def machines_moved(self, tier: str, count: int) -> None:
        """Machines whose owner really changed."""
        self._machines.labels(tier).inc(count)

    def move_suppressed(self, reason: str) -> None:
        """An eligible shortfall was not acted on."""
        self._suppressed.labels(reason).inc()

    def sweep(self, seconds: float) -> None:
        """One round of the rebalancer took so long."""
        self._sweep.observe(seconds)

    def adopted(self, seconds: float) -> None:
        """From the escalated shortfall until its recipient had the machines."""
        self._adoption.observe(seconds)

    # -- callers ---------------------------------------------------------------------------------

    def address_refused(self) -> None:
        """A shard's address cannot be dialled: it is stored empty."""
        self._undialled.inc()

    def identity_rejected(self, surface: str) -> None:
        """shard, admin or read."""
        self._refused.labels(surface).inc()
