"""A store in memory: shared rows, an election among replicas, and faults on demand.

`Shared` is what etcd or a file would be; each replica has its own `MemoryStore` of it. It behaves
like the real engines: a deposed leader cannot write, a commit of unknown fate may have been
written, and everything is all or nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

from bigfleet.coordinator.store.errors import (
    DeposedError,
    SnapshotMissingError,
    StoreConflictError,
    StoreError,
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


class Shared:
    """The rows and who leads."""

    def __init__(self, term: int = 0) -> None:
        self.rows: dict[RowKey, bytes] = {}
        self.revision = 0
        self.term = term
        self.leadership: Leadership | None = None
        self.leader: Leader | None = None
        self.changed = asyncio.Condition()
        self.is_away = False
        """Nothing answers."""
        self.commits = 0

    async def depose(self) -> None:
        """The leader does not any more."""
        async with self.changed:
            if self.leadership is not None:
                self.leadership.lost.set()
            self.leadership = self.leader = None
            self.changed.notify_all()


class MemoryStore:
    """One replica's access."""

    def __init__(self, shared: Shared | None = None) -> None:
        self.shared = shared or Shared()
        self.before_commit: list[Exception] = []
        """Each makes one commit fail before it is written."""
        self.after_commit: list[Exception] = []
        """Each makes one commit fail although it was written."""
        self.gate: asyncio.Event | None = None
        """Commits wait for it."""
        self.next_snapshot: Snapshot | StoreError | None = None
        """What a snapshot is, or why there is none; None for one of the rows."""
        self.is_closed = False

    async def open(self) -> None:
        self._reach()

    async def campaign(self, address: str) -> Leadership:
        shared = self.shared
        async with shared.changed:
            self._reach()
            await shared.changed.wait_for(lambda: shared.leadership is None)
            shared.term += 1
            shared.leadership = Leadership(shared.term)
            shared.leader = Leader(address, shared.term)
            shared.changed.notify_all()
            return shared.leadership

    async def resign(self, leadership: Leadership) -> None:
        leadership.lost.set()
        if self.shared.leadership is leadership:
            await self.shared.depose()

    async def load(self) -> LoadedRows:
        self._reach()
        rows = [StoredRow(key.table, key.key, value) for key, value in self.shared.rows.items()]
        return LoadedRows(rows, self.shared.revision)

    async def commit(
        self,
        puts: Sequence[StoredRow],
        deletes: Sequence[RowKey],
        expected_revision: int,
        leadership: Leadership,
    ) -> int:
        if self.gate is not None:
            await self.gate.wait()
        self._reach()
        if self.before_commit:
            raise self.before_commit.pop(0)
        shared = self.shared
        if shared.leadership is not leadership:
            leadership.lost.set()
            raise DeposedError(f"term {leadership.term} is over")
        if expected_revision != shared.revision:
            raise StoreConflictError(f"at {shared.revision}, not at {expected_revision}")
        for gone in deletes:
            shared.rows.pop(gone, None)
        shared.rows.update({RowKey(row.table, row.key): row.value for row in puts})
        shared.revision += 1
        shared.commits += 1
        if self.after_commit:
            raise self.after_commit.pop(0)
        return shared.revision

    def leader(self) -> Leader | None:
        return None if self.shared.is_away else self.shared.leader

    async def watch(self) -> AsyncIterator[Leader | None]:
        seen = self.shared.leader
        yield seen
        while True:
            async with self.shared.changed:
                while self.shared.leader == seen:
                    await self.shared.changed.wait()
                seen = self.shared.leader
            yield seen

    async def snapshot(self, leadership: Leadership) -> Snapshot:
        self._reach()
        if isinstance(self.next_snapshot, StoreError):
            raise self.next_snapshot
        if self.next_snapshot is not None:
            return self.next_snapshot
        if not self.shared.rows:
            raise SnapshotMissingError("nothing was ever written")
        rows = {f"{key.table}/{key.key}": value.decode() for key, value in self.shared.rows.items()}
        meta = {"term": leadership.term, "revision": self.shared.revision}
        return Snapshot(json.dumps(meta).encode(), json.dumps(rows).encode())

    async def close(self) -> None:
        self.is_closed = True

    def _reach(self) -> None:
        if self.shared.is_away:
            raise StoreUnavailableError("the store is away")
