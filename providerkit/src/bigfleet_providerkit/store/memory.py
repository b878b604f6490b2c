"""The store in memory: the same interface and order, gone with the object.

A test that opens the same object again sees what a restarted process would see. `fail_with` makes
it refuse changes like a full disk.
"""

import asyncio

from bigfleet_providerkit.errors import StateError, StoreUnavailable
from bigfleet_providerkit.store.interface import TABLES, Changes, Done, Tables


class MemoryStore:
    """Tables in dictionaries."""

    def __init__(self) -> None:
        self.path = "memory"
        self.trouble = ""
        self.fail_with = ""
        self._tables: dict[str, dict[bytes, bytes]] = {table: {} for table in TABLES}
        self._label: str | None = None

    def open(self, label: str) -> Tables:
        """Everything that was submitted so far."""
        if self._label not in (None, label):
            raise StateError(f"the store belongs to provider {self._label!r}, not {label!r}")
        self._label = label
        return {table: dict(rows) for table, rows in self._tables.items()}

    def prepare(self, changes: Changes) -> None:
        """Apply changes at once."""
        self._apply(changes)

    def submit(self, changes: Changes, done: Done) -> None:
        """Apply changes now; the caller hears of it on the next turn of the loop."""
        error = None
        if self.fail_with:
            self.trouble = self.fail_with
            error = StoreUnavailable(f"the store cannot be written: {self.fail_with}")
        else:
            self.trouble = ""
            self._apply(changes)
        asyncio.get_running_loop().call_soon(done, error)

    async def close(self) -> None:
        """Nothing waits."""

    def abandon(self) -> None:
        """Nothing waits."""

    def _apply(self, changes: Changes) -> None:
        for (table, key), value in changes.items():
            if value is None:
                self._tables[table].pop(key, None)
            else:
                self._tables[table][key] = value
