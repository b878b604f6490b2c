"""The embedded engine: one file, one coordinator, no election.

file     the file itself: lock, schema, transactions; blocking
engine   the store over it, away from the event loop
"""

from bigfleet.coordinator.store.sqlite.engine import SqliteStore

__all__ = ["SqliteStore"]
