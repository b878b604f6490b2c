"""The provider as a process, killed by SIGKILL at one of its API calls, and started again."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
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
    killed = await _survives(KillSubject(boot, cloud, hosts), folder, Rule(op, moment))
    assert killed, f"{op} was never called"


@dataclass(frozen=True)
class KillSubject:
    """A cloud without a machine, how a provider is booted on it, and the hosts that are billed."""

    boot: Boot
    cloud: Cloud
    hosts: Callable[[], Sequence[Resource]]


async def survives_every_kill(
    new_subject: Callable[[], AbstractContextManager[KillSubject]], folder: Path, moment: Moment
) -> list[str]:
    """Kill the provider at each API call of a life, each time on a new cloud; the names of the
    calls. How often hosts are looked at and listed differs from life to life: a call that a life
    did not come to is left out, and a provider's test says which ones must be there."""
    with new_subject() as subject:
        counts = await _calls_of_a_life(subject, _folder(folder, "whole"))
    killed: list[str] = []
    for op, count in counts.items():
        for number in range(count):
            with new_subject() as subject:
                own = _folder(folder, f"{moment}-{op}-{number}")
                if await _survives(subject, own, Rule(op, moment, skip=number)):
                    killed.append(op)
    return killed


def _folder(parent: Path, name: str) -> Path:
    own = parent / name
    own.mkdir()
    return own


async def _calls_of_a_life(subject: KillSubject, folder: Path) -> Counter[str]:
    """How often a life makes which calls, in the order of the first of each."""
    with subject.boot(folder) as provider:
        await asyncio.to_thread(provider.wait_open, OPEN_S)
        subject.cloud.calls.clear()
        async with provider.channel() as channel:
            shard = Shard(Remote(channel))
            machine = (await shard.machines(State.SPECULATIVE))[0].id
            assert await _live(shard, machine) == {int(State.SPECULATIVE)}
        return Counter(call.op for call in list(subject.cloud.calls))


async def _survives(subject: KillSubject, folder: Path, when: Rule) -> bool:
    """Whether the life came to the call, at which the provider was killed."""
    boot, cloud, hosts = subject.boot, subject.cloud, subject.hosts
    provider = boot(folder)
    try:
        await asyncio.to_thread(provider.wait_open, OPEN_S)
        async with provider.channel() as channel:
            shard = Shard(Remote(channel))
            machine = (await shard.machines(State.SPECULATIVE))[0].id
            number = cloud.faults.add(replace(when, effect=Effect.KILL, pid=provider.process.pid))
            targets = await _live(shard, machine)
        _never_two(hosts())
        if not cloud.faults.fired(number):
            cloud.faults.remove(number)
            return False
        await asyncio.to_thread(provider.process.wait)
        provider = boot(folder)
        await asyncio.to_thread(provider.wait_open, OPEN_S)
        async with provider.channel() as channel:
            shard = Shard(Remote(channel), epoch=2)
            seen = await _settled(shard, machine, hosts)
            assert seen.state in {*targets, int(State.FAILED)}, seen
            if seen.state == int(State.SPECULATIVE):
                assert not hosts(), "a host is still billed"
            if seen.state == int(State.FAILED):
                # The bootstrap data of a Configure is not kept, so it cannot be continued.
                assert seen.last_error.startswith("Interrupted:"), seen.last_error
        return True
    finally:
        provider.kill()


async def _live(shard: Shard, machine: str) -> set[int]:
    """A life until the process ends; where the machine was acknowledged to go last. A request
    without an answer may have been accepted or not."""
    acknowledged = requested = State.SPECULATIVE
    calls = (shard.create, shard.configure, shard.drain, shard.delete)
    try:
        for call, state in zip(calls, STEPS, strict=True):
            requested = state
            await call(machine)
            acknowledged = state
            await shard.until(machine, state, SETTLE_S)
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            raise
    return {int(acknowledged), int(requested)}


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
