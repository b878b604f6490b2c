"""A scripted shard on virtual time, for tests of a simulated cluster's duties on its stream."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from bigfleet.model import (
    LABEL_INSTANCE_TYPE,
    LABEL_ZONE,
    Profile,
    Requirement,
    RequirementOperator,
)
from bigfleet_api.v1alpha1 import provider_pb2 as provider
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_lab.simcluster import Behaviour, SimCluster, SimOperator, Workload, WorkObject
from bigfleet_lab.simcluster.behaviour import Span
from bigfleet_lab.simcluster.memory import MemoryDial, MemoryStream
from sim.loop import virtual_loop
from sim.ports import SimClock

T = TypeVar("T")
PLAIN = Profile.of([Requirement.of(LABEL_INSTANCE_TYPE, RequirementOperator.EXISTS)])
QUICK = Behaviour(prompt_seconds=0, bootstrap_seconds=Span(0, 0), evict_seconds=Span(2, 2))
S = provider.MachineState


class RefusedError(Exception):
    """How a shard ends a session."""

    def __init__(self, code: str) -> None:
        super().__init__("as scripted")
        self.code = code


class ScriptedShard:
    """Takes sessions, writes down what comes, acknowledges as shards do."""

    def __init__(self) -> None:
        self.frames: list[tuple[float, pb.OperatorMessage]] = []
        self.opened: list[float] = []
        self.streams: list[MemoryStream] = []
        self.greets = True
        self.additions = True
        self.acknowledges = True
        self.refuse: list[str] = []
        """Codes with which the next sessions end, after their Hello."""
        self.end: list[str] = []
        """Codes with which the next sessions end, after their first roll-up was acknowledged."""
        self.heard = asyncio.Event()

    async def serve(self, stream: MemoryStream) -> None:
        now = asyncio.get_running_loop().time
        self.opened.append(now())
        while True:
            message = await stream.receive()
            if message is None:
                return
            self.frames.append((now(), message))
            self.heard.set()
            kind = message.WhichOneof("payload")
            if kind == "hello":
                if self.refuse:
                    raise RefusedError(self.refuse.pop(0))
                self.streams.append(stream)
                if not self.greets:
                    continue
                await stream.send(pb.ShardMessage(ack=pb.Acknowledgement(echo="hello")))
            elif kind == "rollup" and self.acknowledges:
                stamp = message.rollup.timestamp_unix_nanos if self.additions else 0
                ack = pb.Acknowledgement(echo="rollup", rollup_timestamp_unix_nanos=stamp)
                await stream.send(pb.ShardMessage(ack=ack))
                if self.end:
                    raise RefusedError(self.end.pop(0))

    def of_kind(self, kind: str) -> list[tuple[float, pb.OperatorMessage]]:
        return [(at, one) for at, one in self.frames if one.WhichOneof("payload") == kind]

    async def send(self, **payload: object) -> None:
        await self.streams[-1].send(pb.ShardMessage(**payload))  # type: ignore[arg-type]

    async def frame(self, kind: str, number: int = 1) -> pb.OperatorMessage:
        """The frame of this kind with this number, waited for."""
        while len(self.of_kind(kind)) < number:
            self.heard.clear()
            await self.heard.wait()
        return self.of_kind(kind)[number - 1][1]


def deployment(name: str = "web", cpu: int = 1_000, profile: Profile = PLAIN) -> WorkObject:
    return WorkObject(name, profile, {"cpu": cpu})


def node(machine: str, state: int, cpu: str = "4", **more: str) -> pb.NodeStateUpdate:
    return pb.NodeStateUpdate(
        machine_id=machine,
        state=S.ValueType(state),
        provider_id=f"host-{machine}",
        labels={LABEL_INSTANCE_TYPE: "t", LABEL_ZONE: more.get("zone", "a")},
        resources=provider.Resources(resources={"cpu": cpu}),
    )


def cordoned(operator: SimOperator) -> list[str]:
    return [one.machine_id for one in operator.cluster.nodes if one.cordoned]


def play(
    scene: Callable[[ScriptedShard, SimOperator], Awaitable[T]],
    behaviour: Behaviour = QUICK,
    workload: Workload | None = None,
    seed: int = 1,
) -> T:
    """Run one cluster with one deployment of two pods against a scripted shard."""

    async def run() -> T:
        shard = ScriptedShard()
        demand = workload or Workload()
        if workload is None:
            demand.add(deployment(), 2)
        dial = MemoryDial(shard.serve)
        cluster = SimCluster("c-1", demand, SimClock(), Random(seed), behaviour)
        operator = SimOperator(cluster, dial, Random(seed))
        running = asyncio.create_task(operator.run())
        try:
            return await scene(shard, operator)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await dial.close()

    return virtual_loop(seed).run(run())
