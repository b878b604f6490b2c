"""Leadership, state writes, the store and its exports.

The time of the last export is shown only by a replica that leads and was told to export: of any
other it would say nothing but that it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from bigfleet.observe.buckets import MEDIUM
from bigfleet.observe.metrics import Instruments

APPLIED: Final = ("success", "error", "fsm_error")
OPS: Final = ("get", "range", "put", "txn", "lease")
REASONS: Final = ("timeout", "unavailable", "conflict", "no_space", "other")
TABLES: Final = ("shards", "clusters", "domains", "quotas", "providers", "moves")
EXPORTED: Final = ("success", "error")
_NS: Final = 1e9


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
