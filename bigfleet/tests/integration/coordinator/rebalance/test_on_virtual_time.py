"""A coordinator and three shards' conversations with it, on virtual time, in one process.

Everything between them is the real thing but for the connection: the client that reports, follows
leaders and keeps acknowledgements, and the coordinator that leads, writes, plans and answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from random import Random

import pytest

from bigfleet.coordinator.errors import CoordinatorError
from bigfleet.coordinator.rebalance import FleetRebalancer
from bigfleet.coordinator.server.coordinator import Coordinator, CoordinatorEnvironment
from bigfleet.coordinator.state import AssignDomain, MovePhase
from bigfleet.model import Machine, MachineState, PenaltyBucket, Profile
from bigfleet.model.machine import LABEL_ZONE
from bigfleet.observe.coordinator import CoordinatorMetrics
from bigfleet.shard.peers.client import CoordinatorClient
from bigfleet.shard.peers.errors import ReportError
from bigfleet.shard.peers.report import Reports
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinating import Shard, inline, machine, stamp
from memory_store import MemoryStore, Shared
from sim.loop import virtual_loop
from sim.ports import SimClock

S = MachineState
ZONES = {"s-1": "z-1", "s-2": "z-2", "s-3": "z-3"}


@dataclass(frozen=True)
class Lack:
    profile: Profile
    deficit: dict[str, int]
    age_cycles: int
    min_unit: dict[str, int]
    clusters: tuple[str, ...] = ("c-1",)


class Town:
    """Coordinators on one store, shards, and machines that some shard lists."""

    def __init__(self, machines: list[Machine]) -> None:
        self.clock, self.shared = SimClock(), Shared()
        self.machines = {one.id: one for one in machines}
        self.coordinators = {name: self._coordinator(name) for name in ("c-1", "c-2")}
        self.shards = {name: Shard(name) for name in ZONES}
        self.lacks: dict[str, list[Lack]] = {}
        self.clients = {name: self._client(name) for name in ZONES}

    def _coordinator(self, name: str) -> Coordinator:
        metrics = CoordinatorMetrics(self.clock.now, version="1")
        world = CoordinatorEnvironment(
            MemoryStore(self.shared), self.clock, metrics, FleetRebalancer(inline, metrics)
        )
        return Coordinator(name, name, world)

    def _client(self, name: str) -> CoordinatorClient:
        shard = self.shards[name]
        reports = Reports(
            name, 1, f"{name}:7780", "", self.clock, shard.book.snapshot,
            lambda: self.lacks.get(name, []), list, lambda: shard.ownership.transfers,
        )  # fmt: skip
        return CoordinatorClient(
            list(self.coordinators), self, reports, shard.instructions, shard.tally, Random(1)
        )

    async def report(self, address: str, report: pb.ShardReport, deadline: float) -> pb.ReportAck:
        """The call of a client."""
        await asyncio.sleep(0.002)
        self.reconcile(report.shard_id)
        try:
            answer = await self.coordinators[address].report(report)
        except CoordinatorError as error:
            raise ReportError("FAILED_PRECONDITION", str(error)) from error
        return answer.to_proto()

    async def close(self) -> None:
        """Nothing to close."""

    def reconcile(self, name: str) -> None:
        """What a shard owns it has; what it was asked to drain is Idle."""
        shard = self.shards[name]
        for one, _ in shard.preempted:
            known = shard.book.get(one)
            if known is not None and known.state is S.CONFIGURED:
                shard.book.vanish(one)
                self.machines[one] = machine(one, zone=known.zone)
                shard.book.take(replace(self.machines[one], excluded=known.excluded))
        shard.preempted.clear()
        for found in self.machines.values():
            if shard.ownership.owns(found) and shard.book.get(found.id) is None:
                shard.book.take(found)

    def owned(self, name: str) -> int:
        return sum(self.shards[name].ownership.owns(one) for one in self.machines.values())

    @property
    def leader(self) -> Coordinator:
        return next(one for one in self.coordinators.values() if one.election.is_leader)


@asynccontextmanager
async def town(machines: list[Machine]) -> AsyncIterator[Town]:
    """Everybody runs, and every shard knows its domain."""
    built = Town([])
    tasks = [asyncio.create_task(one.run()) for one in built.coordinators.values()]
    tasks += [asyncio.create_task(one.run()) for one in built.clients.values()]
    await asyncio.sleep(15)
    for name, zone in ZONES.items():
        await built.leader.apply(AssignDomain(LABEL_ZONE, zone, name))
    await asyncio.sleep(15)
    built.machines.update({one.id: one for one in machines})
    await asyncio.sleep(15)
    try:
        yield built
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def fleet(state: MachineState, each: int) -> list[Machine]:
    kept = stamp(priority=1) if state is S.CONFIGURED else None
    found = [
        machine(f"m-{zone}-{number}", state, zone=zone, stamp=kept)
        for zone in ("z-2", "z-3")
        for number in range(each)
    ]
    return found if state is not S.CONFIGURED else [*found, machine("m-margin", zone="z-2")]


def lack(machines: int, age: int) -> Lack:
    profile = Profile.of(priority=10, interruption=PenaltyBucket(5))
    return Lack(profile, {"cpu": 4_000 * machines}, age, {"cpu": 1_000})


def on_virtual_time(story: Callable[[], Coroutine[object, object, None]], seed: int = 1) -> None:
    virtual_loop(seed).run(story())


@pytest.mark.parametrize(
    ("state", "age", "seconds"),
    [(S.IDLE, 6, 60), (S.SPECULATIVE, 6, 60), (S.CONFIGURED, 13, 90)],
    ids=["idle", "quota", "preempt"],
)
def test_an_escalated_shortfall_is_adopted_within_a_minute(
    state: MachineState, age: int, seconds: float
) -> None:
    async def story() -> None:
        async with town(fleet(state, 40)) as there:
            there.lacks["s-1"] = [lack(4, age)]
            await asyncio.sleep(seconds)
            assert there.owned("s-1") == 4
            there.lacks.clear()
            await asyncio.sleep(60)
            moves = there.leader.lead().state.moves.values()
            assert {move.phase for move in moves} == {MovePhase.DONE}
            assert not any(one.ownership.transfers for one in there.shards.values())

    on_virtual_time(story)


def test_a_large_shortfall_is_covered_over_several_rounds() -> None:
    async def story() -> None:
        async with town(fleet(S.IDLE, 100)) as there:
            for _ in range(40):
                left = 60 - there.owned("s-1")
                there.lacks = {"s-1": [lack(left, 20)]} if left else {}
                await asyncio.sleep(15)
            assert there.owned("s-1") == 60

    on_virtual_time(story)


@pytest.mark.parametrize("seed", range(6))
def test_moves_go_on_while_leaders_come_and_go(seed: int) -> None:
    async def story() -> None:
        chance = Random(seed)
        async with town(fleet(S.IDLE, 40)) as there:
            there.lacks["s-1"] = [lack(8, 6)]
            for _ in range(10):
                await asyncio.sleep(chance.uniform(0.1, 12))
                await there.shared.depose()
            await asyncio.sleep(120)
            there.lacks.clear()
            await asyncio.sleep(400)
            moves = there.leader.lead().state.moves.values()
            assert all(move.phase.is_over for move in moves)
            assert sum(there.owned(name) for name in ZONES) == 80
            assert not any(one.ownership.transfers for one in there.shards.values())
            assert there.owned("s-1") >= 4

    on_virtual_time(story, seed)
