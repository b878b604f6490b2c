"""One shard: how it is, its needs, its machines, and its decisions as they happen.

It is asked again after a pause that grows with what the answer cost, so that looking at a large
shard never takes more than a few per cent of it. What it said last stays until it says something
new.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Final

import grpc
import grpc.aio

from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from bigfleet_api.v1alpha1 import shardread_pb2_grpc as rpc
from bigfleet_dashboard.sources.channels import Channels
from bigfleet_dashboard.sources.coordinator import error_text
from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.state.machines import TableBuilder
from bigfleet_dashboard.state.needs import NeedRow, row_of
from bigfleet_dashboard.state.shards import ShardState

_SECONDS: Final = 5.0
_LIST_SECONDS: Final = 60.0
_REST: Final = 10.0
"""A list that took a second is not asked for again before ten have passed."""
_LATE: Final = 10.0
"""Machines change without a cycle, when a provider says so; they are looked at this often."""
_REMEMBERED: Final = 40
"""How many cycles back the first look at decisions goes."""


class ShardWatch:
    """Keeps one shard's state up to date until cancelled."""

    def __init__(
        self, fleet: Fleet, shard: ShardState, channels: Channels, poll_seconds: float
    ) -> None:
        self._fleet, self._shard, self._channels = fleet, shard, channels
        self._poll = poll_seconds
        self._not_before = 0.0
        self._listed_cycle = -1

    async def run(self) -> None:
        """Ask and listen."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._asking())
            group.create_task(self._listening())

    async def _asking(self) -> None:
        while True:
            await self.ask()
            await asyncio.sleep(self._poll * random.uniform(0.9, 1.1))

    async def ask(self) -> None:
        """One round."""
        shard, fleet = self._shard, self._fleet
        stub = rpc.ShardAdminStub(self._channels.to(shard.address))
        try:
            shard.status = await stub.GetStatus(pb.GetStatusRequest(), timeout=_SECONDS)
            if self._is_due(shard.status.cycle):
                await self._lists(shard.status.cycle)
        except grpc.aio.AioRpcError as error:
            shard.failed(error_text(error), fleet.clock())
        else:
            shard.answered(fleet.clock())
        fleet.changed()

    def _is_due(self, cycle: int) -> bool:
        if time.monotonic() < self._not_before:
            return False
        late = self._fleet.clock() - self._shard.machines_at > _LATE
        return late or cycle != self._listed_cycle or self._moving()

    def _moving(self) -> bool:
        """Whether machines are on their way between states, which no cycle announces."""
        state = self._shard.machines.state
        return bool(len(state) and ((state == 2) | (state == 4) | (state >= 6)).any())

    async def _lists(self, cycle: int) -> None:
        began = time.monotonic()
        stub = rpc.ShardReadStub(self._channels.to(self._shard.address))
        builder = TableBuilder(self._fleet.names, self._shard.shard_id)
        async for batch in stub.ListMachines(pb.ListMachinesRequest(), timeout=_LIST_SECONDS):
            builder.add(batch.machines)
        rows: list[NeedRow] = []
        async for frame in stub.InspectNeeds(pb.InspectNeedsRequest(), timeout=_LIST_SECONDS):
            if frame.WhichOneof("frame") == "header":
                self._shard.needs_cycle = frame.header.cycle
            else:
                rows.append(row_of(self._shard.shard_id, frame.need))
        self._shard.machines, self._shard.needs = builder.table(), rows
        self._shard.machines_at = self._fleet.clock()
        self._listed_cycle = cycle
        self._not_before = time.monotonic() + _REST * (time.monotonic() - began)
        self._fleet.machines_changed()

    async def _listening(self) -> None:
        since = 0
        while True:
            stub = rpc.ShardReadStub(self._channels.to(self._shard.address))
            if not since and self._shard.status is not None:
                since = max(1, self._shard.status.cycle - _REMEMBERED)
            if since:
                call = stub.WatchDecisions(pb.WatchDecisionsRequest(since_cycle=since))
                try:
                    async for decision in call:
                        since = max(since, decision.cycle)
                        if self._fleet.decisions.take(self._shard.shard_id, decision):
                            self._fleet.changed()
                except grpc.aio.AioRpcError:
                    # The other task says why; a shard that starts again counts from the beginning.
                    since = 0
                    self._shard.status = None if not self._shard.answering else self._shard.status
                finally:
                    call.cancel()
            await asyncio.sleep(random.uniform(0.5, 1.5))
