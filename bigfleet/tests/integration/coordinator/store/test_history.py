"""Assignments under faults: whatever is cut, paused or killed, the history has one order."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from etcd_members import Cluster
from histories import History
from linearizable import ASSIGN, READ, UNASSIGN, Operation, first_violation
from small_leaders import NotLeaderError, SmallLeader, UnknownError
from storing import engine_at, opened, until
from tcp_proxy import Proxy

IS_NIGHT = os.environ.get("MODE") == "nightly"
OPERATIONS = 20_000 if IS_NIGHT else 2_000
ROUNDS = 5 if IS_NIGHT else 1
AFTER = 50
"""Operations during a fault, and after it."""
CLIENTS = 5
SHARDS = ("a", "b", "c")

_log = logging.getLogger(__name__)


async def record(history: History, replica: SmallLeader, kind: str, key: str, shard: str) -> bool:
    """Ask a replica for one thing; whether it was one to ask."""
    asked = history.now()
    wanted = shard if kind == ASSIGN else None
    try:
        if kind == READ:
            found = await replica.read(key)
            done = Operation(key, READ, found, asked, history.now())
        elif kind == ASSIGN:
            answer = await replica.assign(key, shard)
            done = Operation(key, ASSIGN, shard, asked, history.now(), answer)
        else:
            await replica.unassign(key)
            done = Operation(key, UNASSIGN, None, asked, history.now())
    except NotLeaderError:
        return False
    except UnknownError:
        done = Operation(key, kind, wanted, asked)
    history.operations.append(done)
    return True


class Replicas:
    """Three small leaders, each behind wires of its own."""

    def __init__(self) -> None:
        self.all: list[SmallLeader] = []
        self.wires: dict[str, list[Proxy]] = {}

    def leader(self) -> SmallLeader | None:
        """The replica that answers now."""
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
        key, shard = chance.choice(history.keys), chance.choice(SHARDS)
        if not await record(history, replica, kind, f"rack/{key}", shard):
            await asyncio.sleep(0.02)
        await asyncio.sleep(0)


async def cut_the_leader(made: Replicas, history: History) -> None:
    leader = made.leader()
    assert leader is not None
    for wire in made.wires[leader.name]:
        wire.cut()
    await until(lambda: made.leader() not in (None, leader))
    await history.more(AFTER)
    for wire in made.wires[leader.name]:
        wire.repair()
    await history.more(AFTER)


async def pause_a_member(cluster: Cluster, history: History) -> None:
    member = await asyncio.to_thread(cluster.leading_member)
    member.signal(signal.SIGSTOP)
    try:
        await history.more(AFTER)
    finally:
        member.signal(signal.SIGCONT)
    await history.more(AFTER)


async def kill_a_member(cluster: Cluster, history: History) -> None:
    member = await asyncio.to_thread(cluster.leading_member)
    await asyncio.to_thread(member.kill)
    try:
        await history.more(AFTER)
    finally:
        await asyncio.to_thread(cluster.start, member)
        await asyncio.to_thread(cluster.wait_until_ready, member)
    await history.more(AFTER)


@pytest.mark.timeout(300 * ROUNDS)
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
        for _ in range(ROUNDS):
            history.turn()
            await history.more(OPERATIONS // ROUNDS // 2)
            await cut_the_leader(made, history)
            await pause_a_member(three_members, history)
            await kill_a_member(three_members, history)
            await cut_the_leader(made, history)
        over.set()
        await asyncio.gather(*clients)
        terms = [term for replica in made.all for term in replica.terms]
    assert len(terms) == len(set(terms)) > 2 * ROUNDS
    assert len(history.operations) >= OPERATIONS
    _log.info("%d without an answer among %d", history.unknown, len(history.operations))
    assert first_violation(history.operations) is None
