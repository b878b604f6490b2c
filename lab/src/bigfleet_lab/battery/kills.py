"""The provider as a process, killed by SIGKILL at one of its API calls, and started again."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import grpc

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_fakecloud.behaviour.faults import Effect, Moment, Rule
from bigfleet_fakecloud.cloud import Cloud
from bigfleet_fakecloud.state.collection import Resource
from bigfleet_providerkit import State
from bigfleet_providerkit.testing import ProviderProcess, Remote, Shard

Boot = Callable[[Path], ProviderProcess]
"""Starts the provider with its state in a folder."""
SETTLE_S, OPEN_S = 40.0, 60.0
LOOK_EVERY_S = 0.05
STEPS = (State.IDLE, State.CONFIGURED, State.IDLE, State.SPECULATIVE)


async def survives_kill(
    boot: Boot,
    folder: Path,
    cloud: Cloud,
    hosts: Callable[[], Sequence[Resource]],
    op: str,
    moment: Moment,
) -> None:
    """Kill the provider at the first `op` of a machine's life. The state that was acknowledged
    last is reached after the restart, and the one machine that is created never has two hosts."""
    provider = boot(folder)
    try:
        await asyncio.to_thread(provider.wait_open, OPEN_S)
        rule = Rule(op, moment, Effect.KILL, pid=provider.process.pid)
        number = cloud.faults.add(rule)
        machine, acknowledged = await _live(provider, hosts)
        assert cloud.faults.fired(number) == 1, f"{op} was never called"
        await asyncio.to_thread(provider.process.wait)
        provider = boot(folder)
        await asyncio.to_thread(provider.wait_open, OPEN_S)
        async with provider.channel() as channel:
            shard = Shard(Remote(channel), epoch=2)
            seen = await _settled(shard, machine, hosts)
            assert seen.state in {int(acknowledged), int(State.FAILED)}, seen
            if seen.state == int(State.FAILED):
                # The bootstrap data of a Configure is not kept, so it cannot be continued.
                assert seen.last_error.startswith("Interrupted:"), seen.last_error
    finally:
        provider.kill()


async def _live(
    provider: ProviderProcess, hosts: Callable[[], Sequence[Resource]]
) -> tuple[str, State]:
    """A life until the process ends; the machine, and where it was acknowledged to go last."""
    target = State.SPECULATIVE
    async with provider.channel() as channel:
        shard = Shard(Remote(channel))
        machine = (await shard.machines(State.SPECULATIVE))[0].id
        calls = (shard.create, shard.configure, shard.drain, shard.delete)
        try:
            for call, state in zip(calls, STEPS, strict=True):
                await call(machine)
                target = state
                await shard.until(machine, state, SETTLE_S)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
    _never_two(hosts())
    return machine, target


async def _settled(
    shard: Shard, machine: str, hosts: Callable[[], Sequence[Resource]]
) -> pb.Machine:
    """The machine once nothing is under way any more."""
    ends = asyncio.get_running_loop().time() + SETTLE_S
    stable = {int(state) for state in (*STEPS, State.FAILED)}
    while True:
        _never_two(hosts())
        seen = await shard.get(machine)
        if seen.state in stable:
            return seen
        assert asyncio.get_running_loop().time() < ends, seen
        await asyncio.sleep(LOOK_EVERY_S)


def _never_two(hosts: Sequence[Resource]) -> None:
    assert len(hosts) <= 1, [host.ref for host in hosts]
