"""What happens to the leader: killed, paused, cut off; or a member of etcd is killed.

Each returns how long it took until a write was taken again, once everything is repaired, and fails
when a deposed leader took one.
"""

from __future__ import annotations

import asyncio
import signal
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinator_calls import call
from replicated import WAIT_SECONDS, Replica, Replicas, write

BAR_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Served:
    """How long no replica took a write, and how much of it this machine was busy with others."""

    seconds: float
    stalled: float

    @property
    def in_time(self) -> bool:
        """Whether it is within the bar of a machine with time to spare."""
        return self.seconds - self.stalled <= BAR_SECONDS

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s, {self.stalled:.2f} of them stalled"


def in_words(served: Sequence[Served]) -> str:
    """How many runs there were, their median, the longest, and those above the bar."""
    seconds = [one.seconds for one in served]
    above = [str(one) for one in served if one.seconds > BAR_SECONDS]
    return (
        f"{len(seconds)} runs, median {statistics.median(seconds):.2f} s, "
        f"longest {max(seconds):.2f} s, {len(above)} above {BAR_SECONDS:g} s {above}"
    )


async def kill_the_leader(fleet: Replicas) -> Served:
    """kill -9, and a new process afterwards."""
    leader = await fleet.leading()
    since = time.monotonic()
    leader.kill()
    served = await _served(fleet, since, leader)
    leader.start()
    await fleet.ready()
    return served


async def pause_the_leader(fleet: Replicas) -> Served:
    """SIGSTOP; what it was asked meanwhile it refuses when it wakes."""
    leader = await fleet.leading()
    async with open_channel(leader.door.address, None) as channel:
        assert (await call(channel, "ListShards", pb.ListShardsRequest())).code == "OK"
        since = time.monotonic()
        leader.signal(signal.SIGSTOP)
        try:
            value = f"late-{fleet.ledger.new_value()}"
            late = asyncio.ensure_future(write(channel, value, WAIT_SECONDS))
            served = await _served(fleet, since, leader)
        finally:
            leader.signal(signal.SIGCONT)
        said = await late
        assert (said.code, said.text) == ("FAILED_PRECONDITION", "coordinator: not leader")
    assert value not in await fleet.assigned()
    await fleet.ready()
    return served


async def cut_the_leader_off(fleet: Replicas) -> Served:
    """Nothing reaches it; a client beside it, who can still ask, is refused."""
    leader = await fleet.leading()
    since = time.monotonic()
    leader.cut()
    try:
        served = await _served(fleet, since, leader)
        async with open_channel(leader.address, None) as beside:
            value = f"beside-{fleet.ledger.new_value()}"
            said = await write(beside, value, WAIT_SECONDS)
        assert (said.code, said.text) == ("FAILED_PRECONDITION", "coordinator: not leader")
        assert value not in await _assigned_elsewhere(fleet, leader)
    finally:
        leader.repair()
    await fleet.ready()
    return served


async def kill_a_member(fleet: Replicas) -> Served:
    """kill -9 of the member that leads etcd; it comes back."""
    await fleet.leading()
    member = await asyncio.to_thread(fleet.cluster.leading_member)
    since = time.monotonic()
    await asyncio.to_thread(member.kill)
    try:
        return await _served(fleet, since, None)
    finally:
        await asyncio.to_thread(fleet.cluster.start, member)
        await asyncio.to_thread(fleet.cluster.wait_until_ready, member)


FAULTS: Mapping[str, Callable[[Replicas], Awaitable[Served]]] = {
    "kill": kill_the_leader,
    "pause": pause_the_leader,
    "cut": cut_the_leader_off,
    "member": kill_a_member,
}


async def _served(fleet: Replicas, since: float, leader: Replica | None) -> Served:
    one = await fleet.serves(since, leader)
    return Served(one.ended - since, fleet.stalls.since(since))


async def _assigned_elsewhere(fleet: Replicas, leader: Replica) -> set[str]:
    """What the others say, without waiting for one that does not answer."""
    others = Replicas([one for one in fleet.replicas if one is not leader], fleet.cluster)
    return await others.assigned()
