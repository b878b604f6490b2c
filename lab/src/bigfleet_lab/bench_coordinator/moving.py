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
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import capacity_pb2, shard_pb2_grpc
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_lab.bench.rows import BarMeasurement, expect
from bigfleet_lab.bench_coordinator.filled import fill, zones_state
from bigfleet_lab.bench_coordinator.machines import CPUS, PLAIN, SPECIAL
from bigfleet_lab.bench_coordinator.owners import Owners, Seen
from bigfleet_lab.bench_coordinator.processes import Coordinator, coordinator
from bigfleet_lab.bench_shard.operators import Operator, SessionMeasurements
from bigfleet_lab.bench_shard.processes import Child, Shard, free_port

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


@dataclass(frozen=True, slots=True)
class Told:
    """What came of it."""

    seconds: float
    """From escalation until everything is adopted; 0 where a process was killed."""
    samples: int
    on_their_way: int
    """The most machines that were in no shard at a time."""
    moves: list[tuple[str, str]]
    """Tier and phase of every move."""


@dataclass(frozen=True, slots=True)
class Running:
    """The processes of a scene, and who has what."""

    leader: Coordinator
    shards: Sequence[Shard]
    owners: Owners

    async def restart(self, number: int, machines: int) -> None:
        """kill -9 of a shard, and a new process that has at least so many machines again."""
        shard = self.shards[number]
        self.owners.away.add(number)
        shard.kill()
        shard.start()
        await asyncio.to_thread(
            shard.wait_cycle, "with its machines", _START_SECONDS, machines=machines
        )
        self.owners.away.discard(number)

    async def restart_leader(self) -> None:
        """kill -9 of the coordinator, and a new one."""
        self.leader.kill()
        await asyncio.to_thread(self.leader.start)


Meanwhile = Callable[[Running], Awaitable[None]]
"""What happens to the processes while machines move."""


@asynccontextmanager
async def _running(scene: Scene) -> AsyncIterator[Running]:
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
        owners = Owners(shards, leader.address)
        stack.push_async_callback(owners.close)
        for shard in shards:
            await asyncio.to_thread(
                shard.wait_cycle, "with its machines", _START_SECONDS,
                machines=scene.machines // scene.shards,
            )  # fmt: skip
        yield Running(leader, shards, owners)


def _provider(scene: Scene, port: int, folder: Path) -> Child:
    module = "bigfleet_lab.bench_coordinator.machines"
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
    measured, channels, tasks = SessionMeasurements(), [], []
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


async def move(scene: Scene, meanwhile: Meanwhile | None = None) -> Told:
    """Run a scene; WrongResultError where a machine had two owners or none, or demand stays."""
    async with _running(scene) as running, _asking(running.shards, scene):
        shards, owners = running.shards, running.owners
        everything = {name for one in await owners.sample() for name in one}
        expect(len(everything) == scene.special * (scene.shards - 1), "machines are missing")
        happening = asyncio.ensure_future(_nothing() if meanwhile is None else meanwhile(running))
        try:
            await _until_adopted(owners, scene, everything)
            adopted = time.time()
            # One that was killed has forgotten its cycles, and when it began to lack something.
            began = adopted if meanwhile else await asyncio.to_thread(_escalated, shards[0])
            await happening
            now = await _until_met(shards, owners, scene, everything)
        finally:
            happening.cancel()
        moves = [(pb.Move.Tier.Name(one.tier), one.phase) for one in await owners.moves()]
    lost = everything.difference(*now)
    expect(not lost, f"{len(lost)} machines have no owner although every move is over")
    expect(len(now[0]) <= scene.lacking, f"{len(now[0])} moved, {scene.lacking} were lacking")
    return Told(adopted - began, owners.samples, owners.on_their_way, moves)


async def _nothing() -> None:
    """No fault disturbs them."""


async def _until_adopted(owners: Owners, scene: Scene, everything: set[str]) -> None:
    deadline = time.monotonic() + _MOVE_SECONDS
    while len((now := await owners.check(everything))[0]) < scene.lacking:
        expect(time.monotonic() < deadline, f"{len(now[0])} of {scene.lacking} moved in time")
        await asyncio.sleep(_SAMPLE_SECONDS)


def _escalated(shard: Shard) -> float:
    """When the cycle began in which the shortfall was old enough, in Unix seconds."""
    age = 0
    for cycle in shard.cycles():
        age = age + 1 if cycle["shortfalls"] else 0
        if age > ESCALATION_CYCLES:
            return float(cycle["start_unix_nanos"]) / 1e9
    expect(False, "the shortfall was never escalated")
    return 0.0


async def _until_met(
    shards: Sequence[Shard], owners: Owners, scene: Scene, everything: set[str]
) -> Seen:
    """Until no shard lacks anything, every machine that came serves, and every move is over."""
    deadline = time.monotonic() + _MOVE_SECONDS
    while True:
        last = [await asyncio.to_thread(shard.cycles) for shard in shards]
        # A shard that has just begun has no cycle yet.
        unmet = sum(cycles[-1]["shortfalls"] if cycles else 1 for cycles in last)
        moving = [one for one in await owners.moves() if one.phase not in ("done", "abandoned")]
        now = await owners.check(everything)
        serving = list(now[0].values()).count(_CONFIGURED)
        if not unmet and not moving and serving >= scene.lacking:
            return now
        left = f"{unmet} shortfalls and {len(moving)} moves are left, {serving} machines serve"
        expect(time.monotonic() < deadline, left)
        await asyncio.sleep(_SAMPLE_SECONDS)


def adoption() -> BarMeasurement:
    """Two shards with 100,000 machines."""
    return BarMeasurement(value=round(asyncio.run(move(TWO)).seconds, 2))
