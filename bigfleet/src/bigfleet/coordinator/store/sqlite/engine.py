"""The store over a file: always the leader, with a term that counts its leaderships.

Every call goes through an Offload, so that no write to a disk ever holds up the loop. A call that
takes too long is given up; what it was doing still ends, and nothing starts before that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from bigfleet.coordinator.store.call_metrics import StoreCallMeter
from bigfleet.coordinator.store.changes import changes_of
from bigfleet.coordinator.store.errors import DeposedError, StoreUnavailableError
from bigfleet.coordinator.store.interface import (
    WRITE_SECONDS,
    Leader,
    Leadership,
    LoadedRows,
    RestoreScope,
    RowKey,
    Snapshot,
    StoreCounts,
    StoredRow,
)
from bigfleet.coordinator.store.leaders import Leaders
from bigfleet.coordinator.store.snapshots.documents import document_of, encode
from bigfleet.coordinator.store.sqlite.file import SqliteFile
from bigfleet.observe.process import Clock, Offload

T = TypeVar("T")


class SqliteStore:
    """See `interface.Store` and `interface.Restorable`."""

    def __init__(
        self, directory: Path, clock: Clock, offload: Offload, counts: StoreCounts
    ) -> None:
        self._directory = directory
        self._clock = clock
        self._offload = offload
        self._counting = StoreCallMeter(counts, clock)
        self._leaders = Leaders()
        self._file: SqliteFile | None = None
        self._leadership: Leadership | None = None

    async def open(self) -> None:
        """Open the file and lock it."""
        if self._file is None:
            self._file = await self._offload(lambda: SqliteFile(self._directory))

    async def campaign(self, address: str) -> Leadership:
        """Lead, at once."""
        self._end_leadership()
        file = self._opened()
        leadership = Leadership(await self._call("put", file.new_term))
        self._leadership = leadership
        self._leaders.show(Leader(address, leadership.term))
        return leadership

    async def resign(self, leadership: Leadership) -> None:
        """Stop leading."""
        leadership.lost.set()
        if leadership is self._leadership:
            self._end_leadership()

    async def load(self) -> LoadedRows:
        return await self._call("range", self._opened().load)

    async def commit(
        self,
        puts: Sequence[StoredRow],
        deletes: Sequence[RowKey],
        expected_revision: int,
        leadership: Leadership,
    ) -> int:
        """Write all of it in one transaction, durably, or none."""
        if leadership.lost.is_set():
            raise DeposedError(f"term {leadership.term} is over; campaign again")
        changes = changes_of(puts, deletes)
        file = self._opened()
        try:
            return await self._call(
                "txn", lambda: file.commit(changes, expected_revision, leadership.term)
            )
        except DeposedError:
            leadership.lost.set()
            raise

    def leader(self) -> Leader | None:
        """This replica, when it leads."""
        return self._leaders.current

    def watch(self) -> AsyncIterator[Leader | None]:
        """Who leads, then every change."""
        return self._leaders.changes()

    async def snapshot(self, leadership: Leadership) -> Snapshot:
        """A document of everything."""
        if leadership.lost.is_set():
            raise DeposedError(f"term {leadership.term} is over; campaign again")
        taken = document_of(await self.load(), leadership.term, self._clock.now())
        return await self._offload(lambda: encode(taken))

    async def replace(
        self, rows: Sequence[StoredRow], term: int, revision: int, over: RestoreScope
    ) -> None:
        """Make these the only rows, in one step."""
        file = self._opened()
        await self._call("txn", lambda: file.replace(rows, term, revision, over))

    async def close(self) -> None:
        """Let go of the file."""
        self._end_leadership()
        file, self._file = self._file, None
        if file is not None:
            await self._offload(file.close)

    def _end_leadership(self) -> None:
        if self._leadership is not None:
            self._leadership.lost.set()
            self._leadership = None
        self._leaders.show(None)

    def _opened(self) -> SqliteFile:
        if self._file is None:
            raise StoreUnavailableError(f"the store in {self._directory} is not open")
        return self._file

    async def _call(self, op: str, function: Callable[[], T]) -> T:
        with self._counting(op):
            try:
                async with asyncio.timeout(WRITE_SECONDS):
                    return await self._offload(function)
            except TimeoutError as error:
                raise StoreUnavailableError(
                    f"the store in {self._directory} did not answer within {WRITE_SECONDS:g} s; "
                    "check its disk"
                ) from error
