"""Machines that go from shard to shard, between real processes: a coordinator, shards, a provider.

One shard's cluster asks for machines of a type that only the other shards have. Measured is the
time from the cycle in which the shortfall is old enough to be escalated until its shard has all of
the machines. Meanwhile every shard is asked again and again what it has: no machine is ever in two
of them, and one that is in none belongs to a move under way.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import grpc.aio

from bigfleet.cli.bench_coordinator.filled import fill, zones_state
from bigfleet.cli.bench_coordinator.machines import CPUS, PLAIN, SPECIAL
from bigfleet.cli.bench_coordinator.processes import coordinator
from bigfleet.cli.bench_shard.operators import Measured, Operator
from bigfleet.cli.bench_shard.processes import Child, Shard, free_port
from bigfleet.cli.measured_rows import Found, expect
from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import capacity_pb2, shard_pb2_grpc, shardread_pb2
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import coordinator_pb2_grpc as rpc
from bigfleet_api.v1alpha1 import shardread_pb2_grpc as read_rpc

ESCALATION_CYCLES: Final = 5
"""A shortfall older than this is covered by others."""
_TYPE: Final = "node.kubernetes.io/instance-type"
_IN: Final = capacity_pb2.NodeSelectorRequirement.OPERATOR_IN
_FLAGS: Final = ("--cycle-interval", "2s")
_ROLLUP_SECONDS: Final = 5.0
_SAMPLE_SECONDS: Final = 0.25
_START_SECONDS: Final = 180.0
_MOVE_SECONDS: Final = 180.0
_CONFIGURED: Final = 5


@dataclass(frozen=True, slots=True)
class Scene:
    """How many shards and machines there are, and how many of them the first shard lacks."""

    shards: int
    machines: int
    lacking: int
    special: int
    """Machines of that type in each other shard."""


TWO: Final = Scene(shards=2, machines=100_000, lacking=500, special=1_000)
THREE: Final = Scene(shards=3, machines=99_999, lacking=1_000, special=1_000)


@dataclass
class Told:
    """What came of it."""

    seconds: float = 0.0
    """From escalation until everything is adopted."""
    samples: int = 0
    on_their_way: int = 0
    """The most machines that were in no shard at a time."""
    moves: list[tuple[str, str]] = field(default_factory=list)
    """Tier and phase of every move."""


class Owners:
    """Who has the machines of the special type, as shards say."""

    def __init__(self, shards: Sequence[Shard], leader: grpc.aio.Channel) -> None:
        self._stubs: list[Any] = []
        self._channels = [open_channel(shard.address, None) for shard in shards]
        self._stubs = [read_rpc.ShardReadStub(channel) for channel in self._channels]
        self._leader: rpc.CoordinatorAsyncStub = rpc.CoordinatorStub(leader)

    async def moves(self) -> Sequence[pb.Move]:
        """Every move there was."""
        request = pb.ListMovesRequest(include_done=True)
        return (await self._leader.ListMoves(request, timeout=20.0)).moves

    async def sample(self) -> list[Mapping[str, int]]:
        """The machines of each shard with their states; the recipient is asked first, so that
        none that goes from a donor to it is seen twice."""
        return [await self._machines(stub) for stub in self._stubs]

    async def _machines(self, stub: Any) -> dict[str, int]:
        found: dict[str, int] = {}
        request = shardread_pb2.ListMachinesRequest(instance_type=SPECIAL)
        async for batch in stub.ListMachines(request, timeout=20.0):
            found |= {record.id: record.state for record in batch.machines}
        return found

    async def close(self) -> None:
        """Hang up."""
        for channel in self._channels:
            await channel.close()


@asynccontextmanager
async def _running(scene: Scene) -> AsyncIterator[tuple[list[Shard], Owners]]:
    """All processes: every shard has its machines, and a cluster that asks for a few plain ones."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="bigfleet-bench-")))
        port = free_port()
        provider = _provider(scene, port, folder)
        stack.callback(provider.kill)
        await fill(folder / "store", zones_state(scene.shards, f"127.0.0.1:{port}"))
        await asyncio.to_thread(provider.wait_ready)
        leader = await asyncio.to_thread(stack.enter_context, coordinator(folder / "store"))
        shards = [_shard(number, leader.address, folder) for number in range(scene.shards)]
        for shard in shards:
            stack.callback(shard.kill)
            shard.start()
        channel = await stack.enter_async_context(open_channel(leader.address, None))
        owners = Owners(shards, channel)
        stack.push_async_callback(owners.close)
        for shard in shards:
            await asyncio.to_thread(
                shard.wait_cycle, "with its machines", _START_SECONDS,
                machines=scene.machines // scene.shards,
            )  # fmt: skip
        yield shards, owners


def _provider(scene: Scene, port: int, folder: Path) -> Child:
    module = "bigfleet.cli.bench_coordinator.machines"
    size = [str(each) for each in (scene.shards, scene.machines, scene.special, port)]
    return Child([sys.executable, "-m", module, *size], folder / "provider.log")


def _shard(number: int, leader: str, folder: Path) -> Shard:
    return Shard(
        data=folder / f"s-{number}",
        provider=0,
        listen=free_port(),
        http=free_port(),
        log=folder / f"s-{number}.log",
        flags=("--coordinator-addr", leader, *_FLAGS),
        shard_id=f"s-{number}",
    )


@asynccontextmanager
async def _asking(shards: Sequence[Shard], scene: Scene) -> AsyncIterator[None]:
    """A cluster at every shard; the first one asks for what its shard lacks."""
    measured, channels, tasks = Measured(), [], []
    for number, shard in enumerate(shards):
        wanted = (SPECIAL, scene.lacking) if number == 0 else (PLAIN, 20)
        channels.append(open_channel(shard.address, None))
        operator = Operator(_rollup(f"c-{number}", *wanted), measured, Random(number))
        stub = shard_pb2_grpc.ShardStub(channels[-1])
        tasks.append(asyncio.ensure_future(operator.run(stub, _ROLLUP_SECONDS, 0.0, 0.0)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for channel in channels:
            await channel.close()


def _rollup(cluster: str, instance_type: str, machines: int) -> capacity_pb2.ClusterCapacityNeeds:
    rollup = capacity_pb2.ClusterCapacityNeeds(cluster_id=cluster)
    need = rollup.needs.add(priority=100)
    need.requirements.add(key=_TYPE, operator=_IN, values=[instance_type])
    need.min_unit.update({"cpu": f"{CPUS}"})
    need.aggregate_resources.update({"cpu": f"{CPUS * machines}"})
    return rollup


async def move(scene: Scene) -> Told:
    """Run a scene; WrongResultError where a machine had two owners or none, or demand stays."""
    told = Told()
    async with _running(scene) as (shards, owners), _asking(shards, scene):
        everything = {name for one in await owners.sample() for name in one}
        expect(len(everything) == scene.special * (scene.shards - 1), "machines are missing")
        deadline = time.monotonic() + _MOVE_SECONDS
        while len((now := await owners.sample())[0]) < scene.lacking:
            await _check(now, everything, owners, told)
            expect(time.monotonic() < deadline, f"{len(now[0])} of {scene.lacking} moved in time")
            await asyncio.sleep(_SAMPLE_SECONDS)
        adopted = time.time()
        told.seconds = adopted - await asyncio.to_thread(_escalated, shards[0])
        await _until_met(shards, owners, scene)
        await _check(now := await owners.sample(), everything, owners, told)
        lost = everything.difference(*now)
        expect(not lost, f"{len(lost)} machines have no owner although every move is over")
        told.moves = [(pb.Move.Tier.Name(one.tier), one.phase) for one in await owners.moves()]
    configured = sum(state == _CONFIGURED for state in now[0].values())
    expect(configured >= scene.lacking, f"{configured} of {scene.lacking} serve their cluster")
    expect(len(now[0]) <= scene.lacking, f"{len(now[0])} moved, {scene.lacking} were lacking")
    return told


async def _check(
    now: Sequence[Mapping[str, int]], everything: set[str], owners: Owners, told: Told
) -> None:
    """Every machine has one owner, or is on its way: a move names it, or waits for names."""
    seen = [name for one in now for name in one]
    expect(len(seen) == len(set(seen)), "a machine has two owners")
    away = everything - set(seen)
    if away:
        moves = await owners.moves()
        lost = away.difference(*(one.machine_ids for one in moves))
        picking = sum(one.count for one in moves if one.phase == "planned")
        expect(len(lost) <= picking, f"{len(lost)} machines have no owner and no move")
    told.samples += 1
    told.on_their_way = max(told.on_their_way, len(away))


def _escalated(shard: Shard) -> float:
    """When the cycle began in which the shortfall was old enough, in Unix seconds."""
    age = 0
    for cycle in shard.cycles():
        age = age + 1 if cycle["shortfalls"] else 0
        if age > ESCALATION_CYCLES:
            return float(cycle["start_unix_nanos"]) / 1e9
    expect(False, "the shortfall was never escalated")
    return 0.0


async def _until_met(shards: Sequence[Shard], owners: Owners, scene: Scene) -> None:
    """Until nobody lacks anything, every machine that came serves, and every move is over."""
    deadline = time.monotonic() + _MOVE_SECONDS
    while True:
        last = [(await asyncio.to_thread(shard.cycles))[-1] for shard in shards]
        unmet = sum(cycle["shortfalls"] for cycle in last)
        states = list((await owners.sample())[0].values())
        open_moves = [one for one in await owners.moves() if one.phase not in ("done", "abandoned")]
        if not unmet and not open_moves and states.count(_CONFIGURED) >= scene.lacking:
            return
        expect(
            time.monotonic() < deadline,
            f"{unmet} shortfalls and {len(open_moves)} moves are left",
        )
        await asyncio.sleep(_SAMPLE_SECONDS)


def adoption() -> Found:
    """Two shards with 100,000 machines."""
    return Found(value=round(asyncio.run(move(TWO)).seconds, 2))
