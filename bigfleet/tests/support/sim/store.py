"""A coordinator's store without a disk: rows that outlive it, and one leadership at a time.

Every call takes a while before and after it takes effect, so that a coordinator may die with a
write of unknown fate. The last to campaign leads: an older leader cannot write any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from random import Random
from typing import Final

from bigfleet.coordinator.store.errors import (
    DeposedError,
    SnapshotMissingError,
    StoreConflictError,
    StoreUnavailableError,
)
from bigfleet.coordinator.store.interface import (
    Leader,
    Leadership,
    LoadedRows,
    RowKey,
    Snapshot,
    StoredRow,
)

_SECONDS: Final = 0.02


class Shelf:
    """What is left of a coordinator when it dies."""

    def __init__(self) -> None:
        self.rows: dict[RowKey, bytes] = {}
        self.revision = 0
        self.term = 0
        self.leadership: Leadership | None = None
        self.is_away = False
        """Writes fail, though some of them are there afterwards."""


class SimStore:
    """`bigfleet.coordinator.store.interface.StateStore` of one life of a coordinator."""

    def __init__(self, shelf: Shelf, rng: Random) -> None:
        self._shelf, self._rng = shelf, rng
        self._leader: Leader | None = None

    async def open(self) -> None:
        """Connect."""
        await self._pass_time()

    async def campaign(self, address: str) -> Leadership:
        """Lead from now on; no other does any more."""
        await self._pass_time()
        shelf = self._shelf
        if shelf.leadership is not None:
            shelf.leadership.lost.set()
        shelf.term += 1
        shelf.leadership = Leadership(shelf.term)
        self._leader = Leader(address, shelf.term)
        return shelf.leadership

    async def resign(self, leadership: Leadership) -> None:
        """Lead no more."""
        leadership.lost.set()

    async def load(self) -> LoadedRows:
        """All rows."""
        await self._pass_time()
        rows = [StoredRow(key.table, key.key, value) for key, value in self._shelf.rows.items()]
        loaded = LoadedRows(rows, self._shelf.revision)
        await self._pass_time()
        return loaded

    async def commit(
        self,
        puts: Sequence[StoredRow],
        deletes: Sequence[RowKey],
        expected_revision: int,
        leadership: Leadership,
    ) -> int:
        """All of it, or nothing."""
        await self._pass_time()
        shelf = self._shelf
        if shelf.is_away and self._rng.random() < 0.5:
            raise StoreUnavailableError("the store is away")
        if shelf.leadership is not leadership:
            leadership.lost.set()
            raise DeposedError(f"term {leadership.term} is over")
        if expected_revision != shelf.revision:
            raise StoreConflictError(f"at {shelf.revision}, not at {expected_revision}")
        for gone in deletes:
            shelf.rows.pop(gone, None)
        shelf.rows.update({RowKey(row.table, row.key): row.value for row in puts})
        shelf.revision += 1
        revision = shelf.revision
        await self._pass_time()
        if shelf.is_away:
            raise StoreUnavailableError("no answer")
        return revision

    def leader(self) -> Leader | None:
        """Who leads, as far as this life knows."""
        return self._leader

    async def watch(self) -> AsyncIterator[Leader | None]:
        """Who leads, once: another leader is another process."""
        yield self._leader
        await asyncio.Event().wait()

    async def snapshot(self, leadership: Leadership) -> Snapshot:
        """No cluster asks for one here."""
        raise SnapshotMissingError("nothing is exported in a simulation")

    async def close(self) -> None:
        """Nothing is open."""

    async def _pass_time(self) -> None:
        await asyncio.sleep(self._rng.random() * _SECONDS)
