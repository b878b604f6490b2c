"""The operators of a shard benchmark: a session per cluster from one process, roll-ups on a beat.

Every beat a share of the rows grows or shrinks by one unit and next time goes back, as in the
engine's steady benchmark. The first roll-ups are spread over SPREAD seconds. Bootstrap requests
and reclaims are answered at once. When stdin closes it ends; every line it reads it answers with
what it measured, as JSON. Run as

    python -m bigfleet_lab.bench_shard.operators WORKLOAD MACHINES ADDRESS INTERVAL CHURN SPREAD
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from random import Random
from typing import Any

import bigfleet.wire.grpc_env  # noqa: F401 - before grpc

# isort: split
import grpc
import uvloop

from bigfleet.model import format_resources, parse_resources
from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import capacity_pb2
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_api.v1alpha1 import shard_pb2_grpc as rpc
from bigfleet_lab.bench_shard.scenario import Fleet

_SESSIONS_PER_CHANNEL = 50
_RECONNECT_SECONDS = 0.5


@dataclass
class SessionMeasurements:
    """What all sessions saw."""

    acks_ms: list[float] = field(default_factory=list)
    rejected: int = 0
    held: int = 0
    bootstraps: int = 0
    reclaims: int = 0
    sessions: int = 0
    lost: int = 0


class Operator:
    """One cluster's session."""

    def __init__(
        self, rollup: capacity_pb2.ClusterCapacityNeeds, measured: SessionMeasurements, rng: Random
    ) -> None:
        self._rollup = rollup
        self._measured = measured
        self._rng = rng
        self._offset = [0] * len(rollup.needs)
        self._sent: dict[int, float] = {}
        self._outbox: asyncio.Queue[pb.OperatorMessage] = asyncio.Queue()

    async def run(self, stub: Any, interval: float, churn: float, begin: float) -> None:
        """Speak until cancelled; a session that ends is followed by the next."""
        while True:
            try:
                await self._speak(stub, interval, churn, begin)
            except* grpc.aio.AioRpcError:
                self._measured.lost += 1
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _speak(self, stub: Any, interval: float, churn: float, begin: float) -> None:
        call = stub.Session()
        hello = pb.Hello(cluster_id=self._rollup.cluster_id, protocol_version="v1alpha1")
        hello.software_version = "bench"
        await call.write(pb.OperatorMessage(hello=hello))
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._write(call)),
                group.create_task(self._beat(interval, churn, begin)),
            ]
            await self._read(call)
            for task in tasks:
                task.cancel()

    async def _beat(self, interval: float, churn: float, begin: float) -> None:
        await asyncio.sleep(begin)
        while True:
            due = time.monotonic() + interval
            self._send()
            self._change(churn)
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    def _send(self) -> None:
        now = time.time_ns()
        self._rollup.timestamp_unix_nanos = now
        self._sent[now] = time.perf_counter()
        message = pb.OperatorMessage()
        message.rollup.CopyFrom(self._rollup)
        self._outbox.put_nowait(message)

    def _change(self, churn: float) -> None:
        rows = self._rollup.needs
        for number in range(len(rows)):
            if self._rng.random() >= churn:
                continue
            step = -self._offset[number] or self._rng.choice((-1, 1))
            row = rows[number]
            unit = parse_resources(row.min_unit)
            amounts = parse_resources(row.aggregate_resources)
            if step < 0 and any(amounts[name] < 2 * unit.get(name, 0) for name in amounts):
                step = 1
            self._offset[number] += step
            changed = {name: amount + step * unit.get(name, 0) for name, amount in amounts.items()}
            for name, text in format_resources(changed).items():
                row.aggregate_resources[name] = text

    async def _write(self, call: Any) -> None:
        while True:
            await call.write(await self._outbox.get())

    async def _read(self, call: Any) -> None:
        self._measured.sessions += 1
        while (message := await call.read()) is not grpc.aio.EOF:
            self._take(message)
        self._measured.lost += 1

    def _take(self, message: pb.ShardMessage) -> None:
        kind = message.WhichOneof("payload")
        if kind == "ack":
            ack = message.ack
            self._measured.rejected += ack.echo == "rollup_rejected"
            self._measured.held += ack.held
            sent = self._sent.pop(ack.rollup_timestamp_unix_nanos, None)
            if sent is not None:
                self._measured.acks_ms.append((time.perf_counter() - sent) * 1e3)
        elif kind == "bootstrap_request":
            self._measured.bootstraps += 1
            blob = pb.BootstrapBlobResponse(
                request_id=message.bootstrap_request.request_id, user_data=b"#!/bin/sh\n" * 40
            )
            self._outbox.put_nowait(pb.OperatorMessage(bootstrap_response=blob))
        elif kind == "reclaim_instruction":
            self._measured.reclaims += 1
            for drained in (0, 1):
                answer = pb.ReclaimAck(
                    instruction_id=message.reclaim_instruction.instruction_id,
                    nodes_started=1,
                    nodes_drained=drained,
                )
                self._outbox.put_nowait(pb.OperatorMessage(reclaim_ack=answer))


async def _main(fleet: Fleet, address: str, interval: float, churn: float, spread: float) -> None:
    rollups = fleet.rollups()
    measured, rng = SessionMeasurements(), Random(1)
    channels: list[grpc.aio.Channel] = []
    print("ready", flush=True)
    async with asyncio.TaskGroup() as group:
        tasks = []
        for number, rollup in enumerate(rollups.values()):
            if number % _SESSIONS_PER_CHANNEL == 0:
                channels.append(open_channel(address, None))
            operator = Operator(rollup, measured, Random(rng.random()))
            stub = rpc.ShardStub(channels[-1])
            begin = spread * number / len(rollups)
            tasks.append(group.create_task(operator.run(stub, interval, churn, begin)))
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            print(json.dumps(measured.__dict__), flush=True)
            measured.acks_ms = []
        for task in tasks:
            task.cancel()
    for channel in channels:
        await channel.close()


if __name__ == "__main__":
    uvloop.run(
        _main(
            Fleet(sys.argv[1], int(sys.argv[2])),
            sys.argv[3],
            float(sys.argv[4]),
            float(sys.argv[5]),
            float(sys.argv[6]),
        )
    )
