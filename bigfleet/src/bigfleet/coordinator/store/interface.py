"""What the coordinator asks of its store: rows, one transaction at a time, and an election.

A store keeps rows of text: (table, key) -> JSON. It knows nothing of their meaning, and its
transactions are guarded twice: by the revision the writer has seen, and by the leadership under
which it writes, so that a deposed leader cannot change anything. There is one revision for all
rows; what else a store writes for itself (election, leases, counters) does not move it.

Engines raise the errors of `errors` and no others. What a failed commit did is unknown unless the
error says so: the writer loads again before it writes again.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from bigfleet.wire.tls import TlsFiles

TABLES: Final = ("shards", "clusters", "domains", "quotas", "providers", "moves", "meta")
"""All tables there are. `meta` holds a few numbers of the state itself."""
WRITE_SECONDS: Final = 5.0
"""The longest a commit, or one page of a load, may take before StoreUnavailableError."""


@dataclass(frozen=True, slots=True, order=True)
class RowKey:
    """Which row. The key is printable ASCII without spaces: parts are percent-encoded, joined by
    `/`."""

    table: str
    key: str


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One row. The value is JSON, in UTF-8."""

    table: str
    key: str
    value: bytes


@dataclass(frozen=True, slots=True)
class LoadedRows:
    """All rows, in no particular order, as they stood at one revision. An empty store is at 0."""

    rows: Sequence[StoredRow]
    revision: int


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads, as far as this replica has heard."""

    address: str
    term: int


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Leadership:
    """The right to write, until it is lost."""

    term: int
    """Strictly higher than that of every leadership before, over restarts and restores."""
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the store when the leadership is over, at the latest before anybody else has one."""
    confirmed: Callable[[], bool] = _always
    """Whether the lease has not run out by this replica's clock. Asked before every answer: a
    process that was paused knows it from this before any task of its loop could set `lost`."""

    def holds(self) -> bool:
        """Whether this replica may answer as the leader now."""
        return not self.lost.is_set() and self.confirmed()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole state as a document: what it is, and its bytes. The same for every engine."""

    meta_json: bytes
    data: bytes


class StateStore(Protocol):
    """One replica's access to the rows. `open` first; one task at a time campaigns and writes."""

    async def open(self) -> None:
        """Connect, or open the file. StoreUnavailableError leaves it closed: try again."""

    async def campaign(self, address: str) -> Leadership:
        """Wait until this replica leads; others are told this address. Cancelling withdraws."""

    async def resign(self, leadership: Leadership) -> None:
        """Let another replica lead at once. Sets `lost`. Never raises: the lease ends anyway."""

    async def load(self) -> LoadedRows:
        """All rows, not older than any commit that was acknowledged before the call."""

    async def commit(
        self,
        puts: Sequence[StoredRow],
        deletes: Sequence[RowKey],
        expected_revision: int,
        leadership: Leadership,
    ) -> int:
        """Write all of it in one transaction, durably, or none; the new revision.

        ConflictError: the revision is another one; nothing was written. DeposedError: the
        leadership is over; nothing was written, `lost` is set. StoreFullError: no room; nothing was
        written. StoreUnavailableError: it may have been written or not. Deleting a row that is
        absent is fine. Any number of rows; an engine that has to split them into several
        transactions of its own makes sure that a reader of `load` sees all or none.
        """

    def leader(self) -> Leader | None:
        """Who leads, as last seen by `watch` or `campaign`; None when no leader is known."""

    def watch(self) -> AsyncIterator[Leader | None]:
        """Who leads: first as it is, then every change, until cancelled. Survives the store being
        away (then None) and compactions."""

    async def snapshot(self, leadership: Leadership) -> Snapshot:
        """A document of everything as it stands now, with the term and the revision.

        SnapshotMissingError: there is nothing yet to take one of. SnapshotError: it cannot be
        encoded. StoreUnavailableError: it cannot be read.
        """

    async def close(self) -> None:
        """Let go of everything, leadership included."""


class RestoreScope(enum.Enum):
    """What a restore may write over."""

    NOTHING = "nothing"
    EVERYTHING = "everything"


class Restorable(Protocol):
    """A store whose rows can be exchanged while no replica leads. Both engines are."""

    async def replace(
        self, rows: Sequence[StoredRow], term: int, revision: int, over: RestoreScope
    ) -> None:
        """Make these the only rows, in one step; every later leadership is above the term.

        StoreNotEmptyError: there are rows and nothing may be written over. StoreLockedError: a
        coordinator leads. In both cases nothing was changed.
        """


class StoreCounts(Protocol):
    """What engines count; see `bigfleet.observe.coordinator`."""

    def store_call(self, op: str, seconds: float) -> None:
        """get, range, put, txn or lease took so long."""

    def store_error(self, op: str, reason: str) -> None:
        """timeout, unavailable, conflict, no_space or other."""

    def store_term(self, term: int) -> None:
        """The store's own consensus term."""


@dataclass(frozen=True, slots=True)
class StorePlace:
    """Where the store is, as the settings say. `store.open_store(place, ...)` makes the engine."""

    address: str
    """`sqlite`, or `etcd://host:2379,host:2379[/prefix]`."""
    replica: str
    """Id of this coordinator."""
    data_dir: Path
    tls: TlsFiles | None = None
    """For the connection to the store, which is not the fleet's own mTLS."""
    username: str = ""
    password_file: Path | None = None
