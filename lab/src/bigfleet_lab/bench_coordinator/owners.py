"""Who has which machine, as real shards say, held against the moves of their coordinator.

No machine is ever in two shards; one that is in none is on its way. What is asked and how often is
the scene's; here is what an answer means.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import grpc.aio

from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import coordinator_pb2_grpc as rpc
from bigfleet_api.v1alpha1 import shardread_pb2
from bigfleet_api.v1alpha1 import shardread_pb2_grpc as read_rpc
from bigfleet_lab.bench.rows import expect
from bigfleet_lab.bench_coordinator.machines import SPECIAL
from bigfleet_lab.bench_shard.processes import Shard

Seen = Sequence[Mapping[str, int]]
"""Machines with their states, for each shard."""
_CALL_SECONDS: Final = 20.0
_AWAY_SECONDS: Final = 60.0
_RETRY_SECONDS: Final = 0.1


class Owners:
    """Who has the machines of the special type."""

    def __init__(self, shards: Sequence[Shard], leader: str) -> None:
        self._channels = [
            open_channel(each, None) for each in (leader, *(s.address for s in shards))
        ]
        self._leader: rpc.CoordinatorAsyncStub = rpc.CoordinatorStub(self._channels[0])
        self._stubs: list[Any] = [read_rpc.ShardReadStub(one) for one in self._channels[1:]]
        self.away: set[int] = set()
        """Shards that are dead or starting: they need not answer, nor have everything."""
        self.samples = 0
        self.on_their_way = 0
        """The most machines that were in no shard at a time."""

    async def moves(self) -> Sequence[pb.Move]:
        """Every move there was; a coordinator may be away for a while."""
        request = pb.ListMovesRequest(include_done=True)
        deadline = time.monotonic() + _AWAY_SECONDS
        while True:
            try:
                return (await self._leader.ListMoves(request, timeout=_CALL_SECONDS)).moves
            except grpc.aio.AioRpcError:
                await _pause(deadline)

    async def sample(self) -> Seen:
        """The machines of each shard with their states; the recipient is asked first, so that
        none that goes from a donor to it is seen twice."""
        return [await self._machines(number) for number in range(len(self._stubs))]

    async def _machines(self, number: int) -> dict[str, int]:
        request = shardread_pb2.ListMachinesRequest(instance_type=SPECIAL)
        deadline = time.monotonic() + _AWAY_SECONDS
        while True:
            found: dict[str, int] = {}
            try:
                async for batch in self._stubs[number].ListMachines(request, timeout=_CALL_SECONDS):
                    found |= {record.id: record.state for record in batch.machines}
            except grpc.aio.AioRpcError:
                if number in self.away:
                    return {}
                # It is back, and gRPC takes its time to dial again.
                await _pause(deadline)
            else:
                return found

    async def check(self, everything: set[str]) -> Seen:
        """A sample in which every machine has one owner, or is on its way: a move names it, or
        waits for names."""
        some_away = bool(self.away)
        now = await self.sample()
        seen = [name for one in now for name in one]
        expect(len(seen) == len(set(seen)), "a machine has two owners")
        self.samples += 1
        missing = everything.difference(seen)
        if missing and not some_away and not self.away:
            moves = await self.moves()
            lost = missing.difference(*(one.machine_ids for one in moves))
            picking = sum(one.count for one in moves if one.phase == "planned")
            expect(len(lost) <= picking, f"{len(lost)} machines have no owner and no move")
            self.on_their_way = max(self.on_their_way, len(missing))
        return now

    async def close(self) -> None:
        """Hang up."""
        for channel in self._channels:
            await channel.close()


async def _pause(deadline: float) -> None:
    """Before the next attempt."""
    expect(time.monotonic() < deadline, f"a process did not answer for {_AWAY_SECONDS:g} s")
    await asyncio.sleep(_RETRY_SECONDS)
