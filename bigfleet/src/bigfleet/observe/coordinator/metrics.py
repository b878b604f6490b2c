"""`CoordinatorMetrics`: one object that all parts of a coordinator write to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from bigfleet.observe.distribution import LONG, MEDIUM
from bigfleet.observe.metrics import OPEN, CommonMetrics, Instruments

# Leadership, state writes, the store and its exports.
#
# The time of the last export is shown only by a replica that leads and was told to export: of any
# other it would say nothing but that it does not.

APPLIED: Final = ("success", "error", "fsm_error")
OPS: Final = ("get", "range", "put", "txn", "lease")
REASONS: Final = ("timeout", "unavailable", "conflict", "no_space", "other")
TABLES: Final = ("shards", "clusters", "domains", "quotas", "providers", "moves")
EXPORTED: Final = ("success", "error")


class StoreMetrics:
    """Written by the leader and by the store."""

    def __init__(self, make: Instruments, now: Callable[[], int]) -> None:
        self._now = now
        self._term = make.gauge("raft_term", "The leadership term that fences instructions.")
        self._is_leader = make.gauge("is_leader", "This replica leads.")
        self._has_leader = make.gauge("has_leader", "This replica knows a leader.")
        self._changes = make.counter("leader_changes_total", "Leader changes seen.")
        self._applied = make.counter("apply_total", "State writes.", outcome=APPLIED)
        self._store_seconds = make.histogram(
            "store_duration_seconds", "Latency of the store.", MEDIUM, op=OPS
        )
        self._store_errors = make.counter(
            "store_errors_total", "Errors of the store.", op=OPS, reason=REASONS
        )
        self._store_term = make.gauge("store_term", "The store's own consensus term.")
        self._entries = make.gauge("state_entries", "Rows of the state.", table=TABLES)
        self._exports = make.counter(
            "snapshot_exports_total", "Periodic exports.", outcome=EXPORTED
        )
        self._exported = now()
        self._exporting = False
        self._leads = False
        make.gauge_of(
            "snapshot_last_success_timestamp_seconds",
            "When the last export succeeded.",
            self._last_export,
        )

    # -- leadership and state --------------------------------------------------------------------

    def leading(self, leads: bool) -> None:
        """Whether this replica leads."""
        self._leads = leads
        self._is_leader.set(leads)

    def leader_known(self, known: bool) -> None:
        """Whether there is a leader, as far as this replica knows."""
        self._has_leader.set(known)

    def leader_changed(self, term: int) -> None:
        """There is another leader than before, with this term."""
        self._term.set(term)
        self._changes.inc()

    def applied(self, outcome: str) -> None:
        """A state write ended: `success`, `error` or `fsm_error`."""
        self._applied.labels(outcome).inc()

    def entries(self, tables: Mapping[str, int]) -> None:
        """How many rows each table has."""
        for table, rows in tables.items():
            self._entries.labels(table).set(rows)

    # -- store -----------------------------------------------------------------------------------

    def store_call(self, op: str, seconds: float) -> None:
        """get, range, put, txn or lease took so long."""
        self._store_seconds.labels(op).observe(seconds)

    def store_error(self, op: str, reason: str) -> None:
        """timeout, unavailable, conflict, no_space or other."""
        self._store_errors.labels(op, reason).inc()

    def store_term(self, term: int) -> None:
        """The store's own consensus term."""
        self._store_term.set(term)

    # -- exports ---------------------------------------------------------------------------------

    def exports_expected(self) -> None:
        """This process was told to export."""
        self._exporting = True

    def snapshot_exported(self, outcome: str) -> None:
        """An export ended: `success` or `error`."""
        self._exports.labels(outcome).inc()
        if outcome == "success":
            self._exported = self._now()

    def _last_export(self) -> float | None:
        return self._exported / _NS if self._exporting and self._leads else None


# Shards and what they are told, moves between them, and callers that were refused.
#
# Series of a shard are there for every shard that is registered, on the leader alone: anybody else
# has heard nothing and would show ages that only grow.

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
