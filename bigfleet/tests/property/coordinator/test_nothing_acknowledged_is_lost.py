"""Replicas that lose the leadership and stores that fail at any moment, on virtual time.

Clients ask the leader. What was acknowledged stays; what a replica refused that does not lead
never happens; what the store did not answer may have happened or not. Terms only rise, and one
revision of assignments never means two different things.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from bigfleet.coordinator.errors import CoordinatorError, NotLeaderError, WriteFailedError
from bigfleet.coordinator.state import AssignDomain, UnassignDomain, state_of
from bigfleet.coordinator.store.errors import StoreUnavailableError
from bigfleet.coordinator.store.interface import Leadership, LoadedRows, RowKey, StoredRow
from coordinators import Fleet, running
from memory_store import MemoryStore, Shared
from sim.loop import virtual_loop


class FaultyStore(MemoryStore):
    """Slow, and at times without an answer, before or after it has done its work."""

    def __init__(self, shared: Shared, rng: Random) -> None:
        super().__init__(shared)
        self._rng = rng
        self.is_well = False

    async def load(self) -> LoadedRows:
        await self._trouble()
        return await super().load()

    async def commit(
        self,
        puts: Sequence[StoredRow],
        deletes: Sequence[RowKey],
        expected_revision: int,
        leadership: Leadership,
    ) -> int:
        await self._trouble()
        revision = await super().commit(puts, deletes, expected_revision, leadership)
        await self._trouble()
        return revision

    async def _trouble(self) -> None:
        await asyncio.sleep(self._rng.choice([0, 0.01, 0.5]))
        if not self.is_well and self._rng.random() < 0.1:
            raise StoreUnavailableError("no answer")


class Story:
    """Two replicas, two shards, a few clients, and a task that deposes leaders."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.shared = Shared()
        self.stores = [FaultyStore(self.shared, self.rng) for _ in range(2)]
        self.replicas = [Fleet(store, f"c-{n}") for n, store in enumerate(self.stores)]
        self.cycles = 0
        self.wanted: dict[tuple[str, str], set[str | None]] = {}
        """What each domain may be: the last acknowledged, and whatever was not answered since."""
        self.meaning: dict[int, bytes] = {}
        self.term = 0

    async def client(self, number: int) -> None:
        """Assigns and unassigns domains that no other touches."""
        for step in range(12):
            domain = ("rack", f"{number}-{step % 3}")
            shard = self.rng.choice(["s-1", None])
            may = self.wanted.setdefault(domain, {None})
            command = AssignDomain(*domain, shard) if shard else UnassignDomain(*domain)
            try:
                await self.rng.choice(self.replicas).coordinator.apply(command)
            except NotLeaderError:
                pass
            except WriteFailedError:
                may.add(shard)
            else:
                may.clear()
                may.add(shard)
            await asyncio.sleep(self.rng.choice([0, 0.1, 1]))

    async def shard(self, seconds: float) -> None:
        """Reports, and holds every answer to what was said before."""
        until = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.3)
            await self.report()

    async def report(self) -> None:
        self.cycles += 1
        replica = self.rng.choice(self.replicas)
        try:
            answer = await replica.report("s-1", cycle=self.cycles, known_clusters=["c-1"])
        except CoordinatorError:
            return
        assert answer.coordinator_term >= self.term
        self.term = answer.coordinator_term
        said = answer.assignments.SerializeToString(deterministic=True)
        assert self.meaning.setdefault(answer.assignments.revision, said) == said

    async def unrest(self) -> None:
        for _ in range(6):
            await asyncio.sleep(self.rng.uniform(0.2, 4))
            await self.shared.depose()

    async def run(self) -> None:
        async with running(self.replicas[0]), running(self.replicas[1]):
            while "s-1" not in {key.key for key in self.shared.rows}:
                await asyncio.sleep(1)
                await self.report()
            async with asyncio.TaskGroup() as group:
                group.create_task(self.unrest())
                group.create_task(self.shard(15))
                for number in range(3):
                    group.create_task(self.client(number))
            for store in self.stores:
                store.is_well = True
            await asyncio.sleep(10)
        rows = [StoredRow(key.table, key.key, value) for key, value in self.shared.rows.items()]
        domains = state_of(rows).domains
        for domain, may in self.wanted.items():
            assert domains.get(domain) in may, domain


@pytest.mark.parametrize("seed", range(25))
def test_what_was_acknowledged_is_there_in_the_end(seed: int) -> None:
    story = Story(seed)
    virtual_loop(seed).run(story.run())
    assert story.term > 1
