"""How fast a shard explains one unmet need with remedies, and what that costs its cycles.

Beside the clusters of the steady world one more cluster asks for what the world cannot give, for
several reasons. One explanation a second is asked for, each of another need; demand changes all the
time, so a cached explanation is rarely of use. The same shard is measured without requests first.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any, Final

from bigfleet_api.v1alpha1 import capacity_pb2
from bigfleet_api.v1alpha1 import shardread_pb2 as read
from bigfleet_lab.bench.rows import expect
from bigfleet_lab.bench_shard.processes import ShardBench, running
from bigfleet_lab.bench_shard.scenarios import settle
from bigfleet_lab.simulate.workloads import make_workload

REQUESTS: Final = 60
"""One a second; the shard is measured for as long without any."""
ROWS: Final = 20
"""Needs of the cluster that nothing can serve."""
_CLUSTER: Final = "c-unserved"
_BEAT: Final = 10.0
_MS: Final = 1e6
_IN: Final = capacity_pb2.NodeSelectorRequirement.OPERATOR_IN


def explaining(machines: int = 50_000) -> dict[str, list[float]]:
    """Milliseconds of explanations, and of cycles without and with one request a second."""
    needs = len(make_workload("steady", machines).scenario.needs)
    with running("steady", machines, interval=_BEAT) as bench:
        return asyncio.run(_measure(bench, needs))


async def _measure(bench: ShardBench, needs: int) -> dict[str, list[float]]:
    import bigfleet.wire.grpc_env  # noqa: F401 - before grpc
    from bigfleet.wire.channel import open_channel
    from bigfleet_api.v1alpha1 import shard_pb2_grpc, shardread_pb2_grpc
    from bigfleet_lab.bench_shard.operators import Operator, SessionMeasurements

    channel = open_channel(bench.shard.address, None)
    operator = Operator(unserved(), SessionMeasurements(), Random(1))
    session = asyncio.create_task(operator.run(shard_pb2_grpc.ShardStub(channel), _BEAT, 0.0, 0.0))
    try:
        calm = await asyncio.to_thread(settle, bench, needs + ROWS)
        await asyncio.sleep(REQUESTS)
        before = [c for c in bench.shard.cycles(calm) if c["needs"] >= needs]
        asked = int(before[-1]["cycle"]) + 1
        stub: Any = shardread_pb2_grpc.ShardReadStub(channel)
        explained = await _ask(stub)
        during = [c for c in bench.shard.cycles(asked) if c["needs"] >= needs]
    finally:
        session.cancel()
        with suppress(asyncio.CancelledError):
            await session
        await channel.close()
    expect(min(len(before), len(during)) >= REQUESTS // 10, "too few cycles were run")
    return {
        "explain_ms": explained,
        "cycle_ms": [c["wall_ns"] / _MS for c in before],
        "cycle_beside_ms": [c["wall_ns"] / _MS for c in during],
    }


async def _ask(stub: Any) -> list[float]:
    """One explanation a second, of one need after the other."""
    known = [view async for view in _views(stub, read.InspectNeedsRequest(cluster_id=_CLUSTER))]
    expect(len(known) == ROWS, f"{len(known)} of {ROWS} needs of {_CLUSTER} are there")
    found = []
    for view in itertools.islice(itertools.cycle(known), REQUESTS):
        due = time.monotonic() + 1.0
        request = read.InspectNeedsRequest(
            cluster_id=_CLUSTER,
            profile_fingerprint=view.profile_fingerprint,
            group=view.need.group,
            size_class=view.need.size_class,
            with_remedies=True,
        )
        begun = time.perf_counter()
        (answer,) = [each async for each in _views(stub, request)]
        found.append((time.perf_counter() - begun) * 1e3)
        why = answer.explanation.why
        expect(not answer.satisfied, "a need that nothing can serve is met")
        expect(bool(why), f"need {answer.need.priority} was not explained")
        expect(not answer.explanation.incomplete, f"a search did not end in time: {why}")
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    return found


async def _views(stub: Any, request: read.InspectNeedsRequest) -> Any:
    async for frame in stub.InspectNeeds(request, timeout=30.0):
        if frame.HasField("need"):
            yield frame.need


def unserved() -> capacity_pb2.ClusterCapacityNeeds:
    """Demand that the world cannot meet, for a reason of each kind."""
    rollup = capacity_pb2.ClusterCapacityNeeds(cluster_id=_CLUSTER)
    rollup.needs.extend(itertools.islice(_rows(), ROWS))
    return rollup


def _rows() -> Iterator[capacity_pb2.CapacityNeed]:
    for number in itertools.count():
        need = capacity_pb2.CapacityNeed(priority=10 * number)
        unit = {"cpu": "1", "memory": "2Gi"}
        kind = number % 4
        if kind in (0, 3):
            unit["example.com/fpga"] = "1"
        if kind in (1, 3):
            need.requirements.add(key="bench.bigfleet/pool", operator=_IN, values=["elsewhere"])
        if kind == 2:
            unit["cpu"] = "4000"
        need.min_unit.update(unit)
        need.aggregate_resources.update(unit)
        yield need
