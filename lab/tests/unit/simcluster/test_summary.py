"""Counts, percentiles, and a run without a network."""

import asyncio
from random import Random

from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_api.v1alpha1 import shardread_pb2 as read
from bigfleet_lab.simcluster import Behaviour, SimFleet
from bigfleet_lab.simcluster.demand_changes import Change, Step
from bigfleet_lab.simcluster.memory import MemoryDial, MemoryStream
from bigfleet_lab.simcluster.stats import percentile
from bigfleet_lab.simcluster.summary import progress, summarise
from sim.loop import virtual_loop
from sim.ports import SimClock


async def refuse_and_judge(stream: MemoryStream) -> None:
    """A shard that refuses every roll-up and says why a row is unmet."""
    while (message := await stream.receive()) is not None:
        if message.HasField("hello"):
            await stream.send(pb.ShardMessage(ack=pb.Acknowledgement(echo="hello")))
        elif message.HasField("rollup"):
            ack = pb.Acknowledgement(echo="rollup_rejected", reason="need 3: cpu")
            await stream.send(pb.ShardMessage(ack=ack))
            verdicts = [
                pb.NeedVerdict(profile_fingerprint="f", reason=read.UNMET_REASON_QUOTA),
                pb.NeedVerdict(profile_fingerprint="g", satisfied=True),
                pb.NeedVerdict(profile_fingerprint="h", reason=read.UnmetReason.ValueType(999)),
            ]
            await stream.send(pb.ShardMessage(need_verdicts=pb.NeedVerdicts(verdicts=verdicts)))


def test_a_percentile_is_one_of_the_numbers() -> None:
    assert percentile([], 0.5) is None
    numbers = [float(n) for n in range(1, 101)]
    assert [percentile(numbers, share) for share in (0, 0.5, 0.95, 0.99, 1)] == [
        1, 50, 95, 99, 100,
    ]  # fmt: skip


def test_a_summary_tells_trouble_and_why_rows_are_unmet() -> None:
    async def run() -> None:
        dial = MemoryDial(refuse_and_judge)
        fleet = SimFleet.make(
            dial, SimClock(), Random(1), clusters=2, rows=4, behaviour=Behaviour(prompt_seconds=0)
        )
        curve = (Step(12.0, Change.STEP, 0.0),)
        running = asyncio.create_task(fleet.run(10.0, curve))
        await asyncio.sleep(8)
        assert progress(fleet).startswith("2/2 connected")
        pods = sum(one.cluster.workload.pods() for one in fleet)
        summary = summarise(fleet, 8.0, 0.5)
        assert pods == summary.pods["waiting"] > 0
        assert not summary.ok
        assert summary.trouble == "roll-up refused: need 3: cpu"
        assert summary.unmet_rows == 4
        assert summary.unmet_reasons == {"QUOTA": 2, "reason 999": 2}
        assert dict(summary.lines())["rows unmet"] == "4 (2 QUOTA, 2 reason 999)"
        assert fleet["sim-0001"].cluster.id == "sim-0001"
        await asyncio.sleep(12)
        assert sum(one.cluster.workload.pods() for one in fleet) == 0, "demand followed the curve"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await dial.close()

    virtual_loop(1).run(run())
