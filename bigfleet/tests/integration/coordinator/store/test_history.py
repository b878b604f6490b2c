"""Assignments under faults: whatever is cut, paused or killed, the history has one order."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random

from etcd_members import Cluster
from linearizable import ASSIGN, READ, UNASSIGN, Operation, first_violation
from small_leaders import NotLeaderError, SmallLeader, UnknownError
from storing import engine_at, opened, until
from tcp_proxy import Proxy

OPERATIONS = 20_000 if os.environ.get("MODE") == "nightly" else 2_000
CLIENTS = 5
KEYS = [f"rack/r{number}" for number in range(6)]
SHARDS = ("a", "b", "c")

_log = logging.getLogger(__name__)


class History:
    """What was asked and answered, in the order of one clock that only counts."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._now = itertools.count()

    async def record(self, replica: SmallLeader, kind: str, key: str, shard: str) -> bool:
        """Ask a replica for one thing; whether it was one to ask."""
        asked = next(self._now)
        wanted = shard if kind == ASSIGN else None
        try:
            if kind == READ:
                found = await replica.read(key)
                done = Operation(key, READ, found, asked, next(self._now))
            elif kind == ASSIGN:
                answer = await replica.assign(key, shard)
                done = Operation(key, ASSIGN, shard, asked, next(self._now), answer)
            else:
                await replica.unassign(key)
                done = Operation(key, UNASSIGN, None, asked, next(self._now))
        except NotLeaderError:
            return False
        except UnknownError:
            done = Operation(key, kind, wanted, asked)
        self.operations.append(done)
        return True


class Replicas:
    """Three small leaders, each behind wires of its own."""

    def __init__(self) -> None:
        self.all: list[SmallLeader] = []
        self.wires: dict[str, list[Proxy]] = {}

    def leader(self) -> SmallLeader | None:
        """Whoever answers now."""
        return next((replica for replica in self.all if replica.leads), None)


@asynccontextmanager
async def replicas(cluster: Cluster, prefix: str, folder: Path) -> AsyncIterator[Replicas]:
    async with AsyncExitStack() as stack:
        made = Replicas()
        tasks = []
        for name in ("x", "y", "z"):
            wires = [await stack.enter_async_context(Proxy(each)) for each in cluster.endpoints]
            address = cluster.address(prefix, [wire.address for wire in wires])
            store = await stack.enter_async_context(opened(engine_at(address, folder, name)))
            replica = SmallLeader(store, name)
            made.all.append(replica)
            made.wires[name] = wires
            tasks.append(asyncio.ensure_future(replica.run()))
        try:
            await until(lambda: made.leader() is not None)
            yield made
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def client(made: Replicas, history: History, chance: Random, faults: asyncio.Event) -> None:
    while len(history.operations) < OPERATIONS or not faults.is_set():
        kind = chance.choice((READ, READ, ASSIGN, ASSIGN, UNASSIGN))
        replica = made.leader() or chance.choice(made.all)
        if not await history.record(replica, kind, chance.choice(KEYS), chance.choice(SHARDS)):
            await asyncio.sleep(0.02)
        await asyncio.sleep(0)


async def after_more(history: History, count: int) -> None:
    goal = len(history.operations) + count
    await until(lambda: len(history.operations) >= goal, 60.0)


async def cut_the_leader(made: Replicas, history: History) -> None:
    leader = made.leader()
    assert leader is not None
    for wire in made.wires[leader.name]:
        wire.cut()
    await until(lambda: made.leader() not in (None, leader))
    await after_more(history, 50)
    for wire in made.wires[leader.name]:
        wire.mend()
    await after_more(history, 50)


async def pause_a_member(cluster: Cluster, history: History) -> None:
    member = await asyncio.to_thread(cluster.leading_member)
    member.signal(signal.SIGSTOP)
    try:
        await after_more(history, 50)
    finally:
        member.signal(signal.SIGCONT)
    await after_more(history, 50)


async def kill_a_member(cluster: Cluster, history: History) -> None:
    member = await asyncio.to_thread(cluster.leading_member)
    await asyncio.to_thread(member.kill)
    try:
        await after_more(history, 50)
    finally:
        await asyncio.to_thread(cluster.start, member)
        await asyncio.to_thread(cluster.wait_until_ready, member)
    await after_more(history, 50)


async def test_the_history_of_assignments_under_faults_is_linearizable(
    three_members: Cluster, prefix: str, tmp_path: Path
) -> None:
    history = History()
    over = asyncio.Event()
    async with replicas(three_members, prefix, tmp_path) as made:
        clients = [
            asyncio.ensure_future(client(made, history, Random(number), over))
            for number in range(CLIENTS)
        ]
        await after_more(history, 100)
        await cut_the_leader(made, history)
        await pause_a_member(three_members, history)
        await kill_a_member(three_members, history)
        await cut_the_leader(made, history)
        over.set()
        await asyncio.gather(*clients)
        terms = [term for replica in made.all for term in replica.terms]
    assert len(terms) == len(set(terms)) >= 3
    assert len(history.operations) >= OPERATIONS
    unknown = sum(not operation.known for operation in history.operations)
    _log.info("%d without an answer among %d", unknown, len(history.operations))
    assert first_violation(history.operations) is None
