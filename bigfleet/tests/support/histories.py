"""Histories of assignments: who asked what of which key, and what was answered, on one clock.

Keys change with every fault, so that few operations of a key lack an answer: a checker tries every
order that they could have happened in.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Final

from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinator_calls import Said, call
from linearizable import ASSIGN, DONE, READ, REFUSED, UNASSIGN, Operation
from replicated import PATIENCE_SECONDS, SHARD, Replica, Replicas
from storing import until

KINDS: Final = (READ, READ, ASSIGN, ASSIGN, UNASSIGN)
SHARDS: Final = (SHARD, "s-2", "s-3")
KEYS: Final = 6
_TOPOLOGY: Final = "room"
_PAUSE_SECONDS: Final = 0.02
_MORE_SECONDS: Final = 120.0


class History:
    """What was asked and answered, in the order of one clock that only counts."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.keys: Sequence[str] = ()
        self._now = itertools.count()
        self._turns = itertools.count()
        self.turn()

    def now(self) -> int:
        """The next moment."""
        return next(self._now)

    def turn(self) -> None:
        """From here on other keys are asked for."""
        turn = next(self._turns)
        self.keys = [f"{turn}-{number}" for number in range(KEYS)]

    async def more(self, count: int) -> None:
        """Until there are so many operations more."""
        goal = len(self.operations) + count
        await until(lambda: len(self.operations) >= goal, _MORE_SECONDS)

    @property
    def unknown(self) -> int:
        """How many got no answer."""
        return sum(not operation.known for operation in self.operations)


class Asker:
    """One client of coordinators that are processes: it asks the leader, one thing at a time.

    After a call without an answer it looks for a leader by reading, so that what it does not know
    is one write for each leader that went.
    """

    def __init__(self, fleet: Replicas, history: History, chance: Random) -> None:
        self._replicas = itertools.cycle(fleet.replicas)
        self._history, self._chance = history, chance

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._ask(next(self._replicas))
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _ask(self, replica: Replica) -> None:
        """One thing after the other, for as long as it answers."""
        async with open_channel(replica.door.address, None) as channel:
            probe = await call(channel, "ListShards", pb.ListShardsRequest(), PATIENCE_SECONDS)
            answered = probe.code == "OK"
            while answered:
                key, kind = self._chance.choice(self._history.keys), self._chance.choice(KINDS)
                shard = self._chance.choice(SHARDS) if kind == ASSIGN else None
                asked = self._history.now()
                method, request = _request(kind, key, shard)
                said = await call(channel, method, request, PATIENCE_SECONDS)
                answered = self._take(Operation(key, kind, shard, asked), said)

    def _take(self, asked: Operation, said: Said) -> bool:
        """What an answer says about an operation; whether the replica can be asked on."""
        key, kind, shard, when = asked.key, asked.kind, asked.shard, asked.asked
        if said.code == "OK":
            found = _found(key, said) if kind == READ else shard
            done = Operation(key, kind, found, when, self._history.now(), DONE)
            self._history.operations.append(done)
            return True
        if said.code == "ALREADY_EXISTS":
            refused = Operation(key, kind, shard, when, self._history.now(), REFUSED)
            self._history.operations.append(refused)
            return True
        if said.code != "FAILED_PRECONDITION" and kind != READ:
            self._history.operations.append(asked)
        return False


def _request(kind: str, key: str, shard: str | None) -> tuple[str, object]:
    if kind == READ:
        return "ListDomainAssignments", pb.ListDomainAssignmentsRequest()
    if kind == ASSIGN:
        request = pb.AssignDomainRequest(
            topology_key=_TOPOLOGY, topology_value=key, shard_id=shard or ""
        )
        return "AssignDomain", request
    return "UnassignDomain", pb.UnassignDomainRequest(topology_key=_TOPOLOGY, topology_value=key)


def _found(key: str, said: Said) -> str | None:
    (answer,) = said.answers
    assert isinstance(answer, pb.ListDomainAssignmentsResponse)
    for one in answer.assignments:
        if (one.topology_key, one.topology_value) == (_TOPOLOGY, key):
            return one.shard_id
    return None


@asynccontextmanager
async def asking(fleet: Replicas, clients: int) -> AsyncIterator[History]:
    """Clients that ask without a pause, and what they are told."""
    for shard in SHARDS:
        await fleet.register(shard)
    history = History()
    askers = [Asker(fleet, history, Random(number)) for number in range(clients)]
    tasks = [asyncio.ensure_future(asker.run()) for asker in askers]
    try:
        yield history
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    failed = [one for one in ended if not isinstance(one, asyncio.CancelledError)]
    assert not failed, failed
