"""A store of each engine for tests, with the clock and threads of a real process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

from bigfleet.coordinator.store.factory import Engine, open_store
from bigfleet.coordinator.store.interface import (
    Leadership,
    RowKey,
    StoreCounts,
    StoredRow,
    StorePlace,
)

T = TypeVar("T")


class RealClock:
    """The clock of this machine."""

    def now(self) -> int:
        """Unix nanoseconds."""
        return time.time_ns()

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()


async def in_threads(function: Callable[[], T]) -> T:
    """An Offload over the loop's own threads."""
    return await asyncio.get_running_loop().run_in_executor(None, function)


def engine_at(
    address: str,
    data_dir: Path,
    replica: str = "r0",
    counts: StoreCounts | None = None,
) -> Engine:
    """An engine, not yet opened."""
    return open_store(StorePlace(address, replica, data_dir), RealClock(), in_threads, counts)


@asynccontextmanager
async def opened(store: Engine) -> AsyncIterator[Engine]:
    """The store while it is open."""
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def leading(store: Engine, address: str = "here:7790", seconds: float = 60.0) -> Leadership:
    """Lead, within a time."""
    async with asyncio.timeout(seconds):
        return await store.campaign(address)


async def rows_in(store: Engine) -> dict[RowKey, bytes]:
    """All rows by their keys."""
    loaded = await store.load()
    found = {RowKey(row.table, row.key): row.value for row in loaded.rows}
    assert len(found) == len(loaded.rows)
    return found


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Until something is so, looked at again and again; fails after a time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)


async def cancelled(task: asyncio.Task[T]) -> None:
    """End a task."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def domain(name: str, shard: str) -> StoredRow:
    """An assignment, as the coordinator would write it."""
    return StoredRow("domains", f"rack/{name}", b'{"shard":"%s"}' % shard.encode())
