"""Replicas that keep assignments in a store, as small as they can be: for histories under faults.

Each waits to lead, loads, and answers from memory for as long as its leadership holds; what it
cannot answer for certain it does not answer. The coordinator does the same with more around it.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

from bigfleet.coordinator.store.errors import DeposedError, StoreError
from bigfleet.coordinator.store.factory import Engine
from bigfleet.coordinator.store.interface import Leadership, RowKey, StoredRow
from linearizable import DONE, REFUSED


class NotLeaderError(Exception):
    """Nothing was done; ask another replica."""


class UnknownError(Exception):
    """It may have been done or not."""


class SmallLeader:
    """One replica."""

    def __init__(self, store: Engine, name: str) -> None:
        self.name = name
        self.terms: list[int] = []
        self._store = store
        self._one = asyncio.Lock()
        self._leadership: Leadership | None = None
        self._shards: dict[str, str] = {}
        self._revision = 0

    @property
    def leads(self) -> bool:
        """Whether it answers."""
        return self._leadership is not None and self._leadership.holds()

    async def run(self) -> None:
        """Lead whenever it may, until cancelled."""
        while True:
            leadership = await self._store.campaign(self.name)
            try:
                loaded = await self._store.load()
            except StoreError:
                await self._store.resign(leadership)
                continue
            self._shards = {row.key: json.loads(row.value)["shard"] for row in loaded.rows}
            self._revision = loaded.revision
            self._leadership = leadership
            self.terms.append(leadership.term)
            await leadership.lost.wait()
            self._leadership = None

    async def read(self, key: str) -> str | None:
        """Whose a key is."""
        async with self._one:
            value = self._shards.get(key)
            self._must_lead()
            return value

    async def assign(self, key: str, shard: str) -> str:
        """Give a free key to a shard."""
        async with self._one:
            self._must_lead()
            if self._shards.get(key, shard) != shard:
                return REFUSED
            value = json.dumps({"shard": shard}).encode()
            await self._commit([StoredRow("domains", key, value)], [])
            self._shards[key] = shard
            return DONE

    async def unassign(self, key: str) -> str:
        """Make a key free."""
        async with self._one:
            self._must_lead()
            await self._commit([], [RowKey("domains", key)])
            self._shards.pop(key, None)
            return DONE

    def _must_lead(self) -> Leadership:
        if self._leadership is None or not self._leadership.holds():
            raise NotLeaderError
        return self._leadership

    async def _commit(self, puts: list[StoredRow], deletes: list[RowKey]) -> None:
        leadership = self._must_lead()
        try:
            self._revision = await self._store.commit(puts, deletes, self._revision, leadership)
        except DeposedError as error:
            raise NotLeaderError from error
        except StoreError as error:
            # What is in memory may be behind: begin again from what is stored.
            self._leadership = None
            with suppress(StoreError):
                await self._store.resign(leadership)
            raise UnknownError from error
