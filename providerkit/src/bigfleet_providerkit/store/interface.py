"""What the kit asks of a store.

A store is a handful of tables of (key, value) rows. Changes are submitted from the event loop and
become durable in the order of submission; everything that waits goes into one transaction. `done`
is called on the event loop, in order, with None or with what kept the change from being stored.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from bigfleet_providerkit.errors import StoreUnavailable

TABLES = ("meta", "machines", "fences", "operations", "running", "late", "notes", "hosts")

# (table, key) -> value, or None to remove the row.
Changes = dict[tuple[str, bytes], bytes | None]
Tables = Mapping[str, dict[bytes, bytes]]
Done = Callable[[StoreUnavailable | None], None]


class Observer(Protocol):
    """Who hears how long the store took and what went wrong."""

    def stored(self, op: str, seconds: float) -> None:
        """One load, append or compact ended."""
        ...

    def store_failed(self, op: str) -> None:
        """One load, append or compact failed."""
        ...


class Quiet:
    """Hears nothing."""

    def stored(self, op: str, seconds: float) -> None:
        """One load, append or compact ended."""

    def store_failed(self, op: str) -> None:
        """One load, append or compact failed."""


class Store(Protocol):
    """Tables that survive."""

    path: str
    trouble: str

    def open(self, label: str) -> Tables:
        """Load everything; raises StateError when the state cannot be used. Blocks."""
        ...

    def submit(self, changes: Changes, done: Done) -> None:
        """Make changes durable; `trouble` is empty again after the first success."""
        ...

    def prepare(self, changes: Changes) -> None:
        """Make changes durable at once, before the store is used from an event loop. Blocks."""
        ...

    async def close(self) -> None:
        """Write what waits and let go of the files."""
        ...

    def abandon(self) -> None:
        """Let go without writing what waits: the end of a process that was killed."""
        ...
