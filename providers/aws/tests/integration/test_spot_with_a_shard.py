"""A spot notice with a real shard: the provider sees it soon, and a replacement is ordered in time.

The shard is a process of its own and speaks gRPC with the provider, which runs here with boto3 on
the imitated AWS; the cluster is simulated and speaks gRPC with the shard.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

pytest.importorskip("boto3")

from aws_world import AwsWorld, aws_world
from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_lab.simcluster.behaviour import Behaviour
from bigfleet_lab.simcluster.fleet import SimFleet
from bigfleet_lab.simcluster.generator import Mix
from bigfleet_lab.simcluster.lines import GrpcDial
from bigfleet_lab.simcluster.run import WallClock
from bigfleet_providerkit import State
from bigfleet_providerkit.testing import Remote, Shard, eventually
from whole.processes import ShardProcess

SPOT_ONLY = "- {instance_type: c7g.xlarge, zone: us-east-1a, capacity_type: spot, count: 4}"
FLAGS = ("--cycle-interval=1s", "--min-cycle-gap=50ms")
SEEN_WITHIN_S = 5.0
T = TypeVar("T")
pytestmark = pytest.mark.timeout(300)


@contextlib.asynccontextmanager
async def a_cluster_of_one_pod(shard: ShardProcess) -> AsyncIterator[None]:
    """A cluster whose only Pod needs a whole machine."""
    dial = GrpcDial(shard.address)
    whole = Mix(cpus=(3_000,), gibibytes_per_cpu=(1,), replicas=(1, 1), gangs=0.0, spread=0.0)
    fleet = SimFleet.make(
        dial, WallClock(), Random(1), clusters=1, rows=1, mix=whole,
        behaviour=Behaviour(rollup_seconds=1.0),
    )  # fmt: skip
    running = asyncio.create_task(fleet.run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await dial.close()


async def until(shard: ShardProcess, what: str, holds: Callable[[], Awaitable[T]]) -> T:
    """Wait for something that a provider or a shard is asked for; fails when the shard ended."""
    found: list[T] = []

    async def seen() -> bool:
        assert shard.process is not None
        assert shard.process.poll() is None, f"the shard ended: {shard.said()[-2000:]}"
        answer = await holds()
        if answer:
            found.append(answer)
        return bool(answer)

    await eventually(seen, seconds=90.0, what=what)
    return found[0]


async def test_a_replacement_is_decided_before_the_announced_end(tmp_path: Path) -> None:
    async with aws_world(queue=True, offerings=SPOT_ONLY, listen=True) as world:
        shard = ShardProcess(tmp_path, world.running.address, FLAGS)
        shard.start()
        try:
            async with a_cluster_of_one_pod(shard), on_the_wire(world) as provider:

                async def serving() -> list[pb.Machine]:
                    return await provider.machines(State.CONFIGURED)

                (first,) = await until(shard, "a machine in the cluster", serving)
                ends = await announced_end(world, provider, first)

                async def replaced() -> list[str]:
                    machines = await provider.machines()
                    taken = [m.id for m in machines if m.state != int(State.SPECULATIVE)]
                    return [machine for machine in taken if machine != first.id]

                await until(shard, "a second machine to be ordered", replaced)
                assert time.time() < ends

                async def moved() -> bool:
                    machines = await serving()
                    return (
                        [m.id for m in machines if m.id != first.id]
                        == [m.id for m in machines]
                        != []
                    )

                await until(shard, "the second machine to serve alone", moved)
                assert time.time() < ends
        finally:
            shard.kill()


@contextlib.asynccontextmanager
async def on_the_wire(world: AwsWorld) -> AsyncIterator[Shard]:
    """A client of the provider's gRPC port."""
    async with open_channel(world.running.address, None) as channel:
        yield Shard(Remote(channel))


async def announced_end(world: AwsWorld, provider: Shard, machine: pb.Machine) -> float:
    """The host is taken back: Unix seconds of the end, as the provider shows it soon after."""
    instance = world.aws.ec2.instances.happen(machine.host.ref, "reclaim")

    async def shown() -> bool:
        return (await provider.get(machine.id)).interruption_unix_nanos > 0

    await eventually(shown, seconds=SEEN_WITHIN_S, what="the announced end")
    ends = (await provider.get(machine.id)).interruption_unix_nanos / 1e9
    assert ends == pytest.approx(instance.changed + 120, abs=1.0)
    return ends
