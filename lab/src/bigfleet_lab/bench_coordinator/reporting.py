"""Many simulated shards in one process: each reports on a beat, as large as reports get.

What a shard could give is 500 classes in racks of its own, so that no two shards have a class in
common; every class has another number of machines each time. A share of the shards lacks a hundred
things, and has lacked them for long. A shard that is asked for machines has none left. Every line
that is read from stdin is answered with what was measured since the last one, as JSON. Run as

    python -m bigfleet_lab.bench_coordinator.reporting ADDRESS SHARDS CLUSTERS DOMAINS INTERVAL
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import bigfleet.wire.grpc_env  # noqa: F401 - before grpc

# isort: split
import grpc
import uvloop

from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import capacity_pb2, provider_pb2
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_lab.bench_coordinator.filled import RACK, ZONE, Size

METHOD: Final = "/bigfleet.v1alpha1.Coordinator/ReportShard"
CLASSES: Final = 500
LACKS: Final = 100
TYPES: Final = 40
STARVED: Final = 10
"""One shard in so many lacks much."""
_SHARDS_PER_CHANNEL: Final = 10
_TYPE: Final = "node.kubernetes.io/instance-type"
_IN: Final = capacity_pb2.NodeSelectorRequirement.OPERATOR_IN
_ASSIGNMENTS: Final = pb.ReportAck.DESCRIPTOR.fields_by_name["assignments"].number


@dataclass
class ReportMeasurements:
    """What all shards saw since they were last asked."""

    report_ms: list[float] = field(default_factory=list)
    """Of reports whose answer held no assignments."""
    assigned_ms: list[float] = field(default_factory=list)
    """Of the others."""
    refused: int = 0
    instructions: int = 0
    up_to_date: int = 0
    """Shards that hold assignments."""


class SimShard:
    """One shard's conversation."""

    def __init__(self, number: int, size: Size, measured: ReportMeasurements, rng: Random) -> None:
        self._measured, self._rng = measured, rng
        self._report = _first_report(number, size)
        self._is_starved = number % STARVED == 0

    async def run(self, channel: grpc.aio.Channel, begin: float, interval: float) -> None:
        """Report until cancelled."""
        call: Any = channel.unary_unary(METHOD)
        due = time.monotonic() + begin
        while True:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due += interval
            content = self._next()
            begun = time.perf_counter()
            try:
                answer = await call(content, timeout=30.0)
            except grpc.aio.AioRpcError:
                self._measured.refused += 1
                continue
            self._take(answer, (time.perf_counter() - begun) * 1e3)

    def _next(self) -> bytes:
        report = self._report
        report.cycle += 1
        report.timestamp_unix_nanos = time.time_ns()
        for row in report.summary.free_by_class:
            row.idle = self._rng.randrange(1, 4)
        for lack in report.shortfalls:
            lack.age_cycles += 1 if self._is_starved else 0
        return report.SerializeToString()

    def _take(self, answer: bytes, took: float) -> None:
        small, revision = split(answer)
        if revision:
            self._measured.assigned_ms.append(took)
            self._measured.up_to_date += self._report.assignments_revision == 0
            self._report.assignments_revision = revision
        else:
            self._measured.report_ms.append(took)
        said = pb.ReportAck.FromString(small)
        self._measured.refused += not said.acknowledged
        self._measured.instructions += len(said.instructions)
        self._report.ClearField("instruction_acks")
        for one in said.instructions:
            self._report.instruction_acks.add(
                instruction_id=one.instruction_id, outcome=pb.InstructAck.OUTCOME_ACCEPTED
            )


def split(answer: bytes) -> tuple[bytes, int]:
    """An answer without its assignments, and their revision; 0 where there are none.

    Megabytes of foreign domains are skipped, not read: the process that measures has one core.
    """
    at = 0
    while at < len(answer):
        begin = at
        tag, at = _varint(answer, at)
        if tag & 7 == 2:
            length, at = _varint(answer, at)
            if tag >> 3 == _ASSIGNMENTS:
                return answer[:begin], _revision(answer, at, at + length)
            at += length
        else:
            _, at = _varint(answer, at)
    return answer, 0


def _revision(content: bytes, at: int, end: int) -> int:
    number = pb.ShardAssignments.DESCRIPTOR.fields_by_name["revision"].number
    while at < end:
        tag, at = _varint(content, at)
        value, at = _varint(content, at)
        if tag >> 3 == number:
            return value
        if tag & 7 == 2:
            at += value
    return 0


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _first_report(number: int, size: Size) -> pb.ShardReport:
    shard_id, racks = size.shard_ids()[number], size.racks_of(number)
    report = pb.ShardReport(
        shard_id=shard_id,
        shard_epoch=1,
        shard_address=f"{shard_id}:7780",
        known_clusters=size.clusters_of(number),
    )
    summary = report.summary
    summary.total_machines, summary.free_machines = 2_500, 1_000
    for place in range(CLASSES):
        name, zone = f"m-{place % TYPES}", f"zone-{number % 40}"
        row = summary.free_by_class.add(
            instance_type=name,
            zone=zone,
            capacity_type=provider_pb2.CAPACITY_TYPE_ON_DEMAND,
            provider="cloud",
            region="r-1",
            allocatable=_resources(4 + place % 8),
        )
        rack = racks[place % len(racks)]
        row.labels.update({RACK: rack, ZONE: zone, _TYPE: name, "kubernetes.io/arch": "amd64"})
        summary.per_instance_type_counts[name] += 5
        summary.per_zone_counts[zone] += 5
    summary.quota_totals.add(provider="cloud", region="r-1", per_shard={shard_id: 2_500})
    is_starved = number % STARVED == 0
    for lack in range(LACKS if is_starved else LACKS // 20):
        _add_lack(report, number, lack, 6 if is_starved else 1)
    return report


def _add_lack(report: pb.ShardReport, shard: int, number: int, age: int) -> None:
    lack = report.shortfalls.add(
        priority=number % 7,
        age_cycles=age,
        deficit=_resources(16),
        min_unit=_resources(2),
        cluster_ids=[report.known_clusters[number % len(report.known_clusters)]],
        profile_fingerprint=f"{shard:03d}{number:029d}",
    )
    lack.requirements.add(key=_TYPE, operator=_IN, values=[f"m-{number % TYPES}"])
    lack.requirements.add(key="kubernetes.io/arch", operator=_IN, values=["amd64"])


def _resources(cpus: int) -> provider_pb2.Resources:
    return provider_pb2.Resources(resources={"cpu": f"{cpus}", "memory": f"{4 * cpus}Gi"})


async def _main(address: str, size: Size, interval: float) -> None:
    measured, rng = ReportMeasurements(), Random(1)
    channels: list[grpc.aio.Channel] = []
    shards = [SimShard(n, size, measured, Random(rng.random())) for n in range(size.shards)]
    print("ready", flush=True)
    async with asyncio.TaskGroup() as group:
        tasks = []
        for number, shard in enumerate(shards):
            if number % _SHARDS_PER_CHANNEL == 0:
                channels.append(open_channel(address, None))
            begin = interval * number / size.shards
            tasks.append(group.create_task(shard.run(channels[-1], begin, interval)))
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            print(json.dumps(measured.__dict__), flush=True)
            measured.report_ms, measured.assigned_ms = [], []
        for task in tasks:
            task.cancel()
    for channel in channels:
        await channel.close()


def _arguments(words: list[str]) -> Any:
    return words[0], Size(*map(int, words[1:4])), float(words[4])


if __name__ == "__main__":
    uvloop.run(_main(*_arguments(sys.argv[1:])))
