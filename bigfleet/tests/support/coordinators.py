"""Coordinators for tests: leading at once, on a store in memory, with reports that say little."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bigfleet.coordinator.leadership.ports import Rebalancer
from bigfleet.coordinator.server.coordinator import Coordinator, CoordinatorEnvironment
from bigfleet.observe.coordinator import CoordinatorMetrics
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from clocks import HandClock
from memory_store import MemoryStore


class Fleet:
    """One coordinator and what a test moves: its clock and its store."""

    def __init__(
        self,
        store: MemoryStore | None = None,
        name: str = "c-1",
        rebalancer: Rebalancer | None = None,
    ) -> None:
        self.store = store or MemoryStore()
        self.clock = HandClock()
        self.metrics = CoordinatorMetrics(self.clock.now, version="1")
        world = CoordinatorEnvironment(self.store, self.clock, self.metrics, rebalancer)
        self.coordinator = Coordinator(name, f"{name}:7790", world)
        self._cycles: dict[str, int] = {}

    async def report(self, shard: str = "s-1", **said: object) -> pb.ReportAck:
        """The answer to a shard's next report."""
        return (await self.coordinator.report(self.next_report(shard, **said))).to_proto()

    def next_report(self, shard: str = "s-1", **said: object) -> pb.ShardReport:
        """A report with the next number; it may be told anything."""
        self._cycles[shard] = self._cycles.get(shard, 0) + 1
        fields: dict[str, object] = {
            "shard_id": shard,
            "shard_epoch": 1,
            "cycle": self._cycles[shard],
            "shard_address": f"{shard}:7780",
            **said,
        }
        return pb.ShardReport(**fields)  # type: ignore[arg-type]

    def value(self, name: str, **labels: str) -> float | None:
        """A metric as it is now."""
        return self.metrics.registry.get_sample_value(f"bigfleet_coordinator_{name}", labels)


@asynccontextmanager
async def leading(fleet: Fleet) -> AsyncIterator[Fleet]:
    """A coordinator that runs, and leads when the block begins."""
    async with running(fleet):
        await until(lambda: fleet.coordinator.election.is_leader)
        yield fleet


@asynccontextmanager
async def running(fleet: Fleet) -> AsyncIterator[Fleet]:
    """A coordinator that runs."""
    life = asyncio.create_task(fleet.coordinator.run())
    try:
        yield fleet
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)


async def until(holds: Callable[[], bool], turns: int = 1_000) -> None:
    """Let others run until something holds; that takes turns, not time."""
    for _ in range(turns):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to hold")
