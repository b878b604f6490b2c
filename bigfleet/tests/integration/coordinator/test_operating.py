"""What the operator's guide promises, with real processes: growing from one coordinator to three,
restoring a backup, and replacing coordinators one after the other while everybody writes.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_lab.bench_coordinator.processes import coordinator
from coordinator_calls import call
from etcd_members import Cluster
from replicated import SHARD, WAIT_SECONDS, three_replicas, write


def bigfleetctl(*words: str) -> str:
    """What it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "bigfleet.cli.ctl.main", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def report(address: str, cycle: int) -> pb.ReportAck:
    """The answer to a report of the shard."""
    asked = pb.ShardReport(shard_id=SHARD, shard_epoch=1, cycle=cycle, shard_address="s-1:7780")
    async with open_channel(address, None) as channel:
        said = await call(channel, "ReportShard", asked, WAIT_SECONDS)
    assert said.code == "OK", said
    (answer,) = said.answers
    assert isinstance(answer, pb.ReportAck)
    return answer


async def test_one_coordinator_grows_to_three_with_everything_it_knows(
    three_members: Cluster, prefix: str, tmp_path: Path
) -> None:
    file, store = tmp_path / "fleet.json", three_members.address(prefix)
    with coordinator(tmp_path / "one") as one:
        before = await report(one.address, 1)
        async with open_channel(one.address, None) as channel:
            assert (await write(channel, "from-before", WAIT_SECONDS)).code == "OK"
        ask = ("--coordinator", one.address)
        await asyncio.to_thread(bigfleetctl, *ask, "register-provider", "cloud", "p:9001")
        await asyncio.to_thread(bigfleetctl, *ask, "snapshot", "save", str(file))
    await asyncio.to_thread(bigfleetctl, "snapshot", "restore", str(file), "--store", store)
    async with three_replicas(three_members, prefix, tmp_path) as fleet:
        assert "from-before" in await fleet.assigned()
        leader = await fleet.leading()
        after = await report(leader.door.address, 2)
        assert after.coordinator_term > before.coordinator_term
        assert "cloud" in {provider.name for provider in after.assignments.providers}
        # Whichever is asked: it names the leader, and the tool goes there.
        for replica in fleet.replicas:
            words = ("--coordinator", replica.door.address, "list-domain-assignments")
            said = await asyncio.to_thread(bigfleetctl, *words, "--output", "json")
            assert '"from-before"' in said


async def test_coordinators_are_replaced_one_after_the_other_while_everybody_writes(
    three_members: Cluster, prefix: str, tmp_path: Path
) -> None:
    async with three_replicas(three_members, prefix, tmp_path) as fleet:
        for replica in fleet.replicas:
            since = time.monotonic()
            replica.signal(signal.SIGTERM)
            assert replica.process is not None
            code = await asyncio.to_thread(replica.process.wait, WAIT_SECONDS)
            assert code == 0, replica.said()
            # The former leader has let go of it, so that no caller waits for a lease to end.
            served = await fleet.serves(since, replica)
            assert served.ended - since - fleet.stalls.since(since) < 3.0
            replica.start()
            await fleet.ready()
        await fleet.check()
