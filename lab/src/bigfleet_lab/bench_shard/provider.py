"""The provider of a shard benchmark: a process whose machines end every transition at once.

It keeps the parts of the contract that a shard's speed depends on (pages, cursors, acks with the
machine) and nothing else: fences and durability are measured with real providers. Run as

    python -m bigfleet_lab.bench_shard.provider WORKLOAD MACHINES PORT
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Protocol

import bigfleet.wire.grpc_env  # noqa: F401 - before grpc

# isort: split
import grpc
import uvloop

from bigfleet.wire.server import WireServer
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_api.v1alpha1 import provider_pb2_grpc as rpc
from bigfleet_lab.bench_shard.scenario import Fleet

SERVICE = "bigfleet.v1alpha1.CapacityProvider"
S = pb.MachineState
Context = Any


class Records(Protocol):
    """The machines there are."""

    def records(self) -> Iterable[pb.Machine]:
        """As a provider lists them."""
        ...


class InstantProvider(rpc.CapacityProviderServicer):
    """Machines in memory, in the order of their last change."""

    def __init__(self, fleet: Records) -> None:
        self._machines: OrderedDict[str, tuple[int, bytes]] = OrderedDict()
        self._revision = 0
        for record in fleet.records():
            self._put(record)

    def _put(self, record: pb.Machine) -> None:
        self._revision += 1
        self._machines.pop(record.id, None)
        self._machines[record.id] = (self._revision, record.SerializeToString())

    async def _get(self, machine_id: str, context: Context) -> pb.Machine:
        known = self._machines.get(machine_id)
        if known is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no machine {machine_id!r}")
            raise AssertionError("abort does not return")
        return pb.Machine.FromString(known[1])

    def _ack(self, record: pb.Machine) -> pb.TransitionAck:
        self._put(record)
        return pb.TransitionAck(operation_id=f"op-{self._revision}", machine=record)

    async def Create(self, request: pb.CreateRequest, context: Context) -> pb.TransitionAck:  # noqa: N802
        """A host at once."""
        record = await self._get(request.machine_id, context)
        record.state = S.MACHINE_STATE_IDLE
        record.host.provider, record.host.ref = "bench", record.id
        return self._ack(record)

    async def Configure(self, request: pb.ConfigureRequest, context: Context) -> pb.TransitionAck:  # noqa: N802
        """A node at once."""
        record = await self._get(request.machine_id, context)
        record.state, record.cluster = S.MACHINE_STATE_CONFIGURED, request.cluster_id
        record.shard_metadata.clear()
        record.shard_metadata.update(request.shard_metadata)
        return self._ack(record)

    async def Drain(self, request: pb.DrainRequest, context: Context) -> pb.TransitionAck:  # noqa: N802
        """Empty at once."""
        record = await self._get(request.machine_id, context)
        record.state, record.cluster = S.MACHINE_STATE_IDLE, ""
        record.shard_metadata.clear()
        return self._ack(record)

    async def Delete(self, request: pb.DeleteRequest, context: Context) -> pb.TransitionAck:  # noqa: N802
        """Given back at once."""
        record = await self._get(request.machine_id, context)
        record.state = S.MACHINE_STATE_SPECULATIVE
        record.ClearField("host")
        return self._ack(record)

    async def Get(self, request: pb.MachineRef, context: Context) -> pb.Machine:  # noqa: N802
        """One machine."""
        return await self._get(request.id, context)

    async def List(self, request: pb.ListFilter, context: Context) -> pb.MachineList:  # noqa: N802
        """Those that changed after the cursor, oldest change first."""
        since = int(request.since_revision or b"0")
        found: list[tuple[int, bytes]] = []
        for entry in reversed(self._machines.values()):
            if entry[0] <= since:
                break
            found.append(entry)
        found.reverse()
        cut = bool(request.max_results) and len(found) > request.max_results
        if cut:
            found = found[: request.max_results]
        answer = pb.MachineList(revision=str(found[-1][0] if cut else self._revision).encode())
        for _, content in found:
            answer.machines.add().ParseFromString(content)
        return answer


async def serve(fleet: Records, port: int) -> None:
    """Until the process ends."""
    server = WireServer((SERVICE,))
    rpc.add_CapacityProviderServicer_to_server(InstantProvider(fleet), server.grpc)
    await server.start(f"127.0.0.1:{port}")
    await server.ready(True)
    print("ready", flush=True)
    await server.grpc.wait_for_termination()


if __name__ == "__main__":
    uvloop.run(serve(Fleet(sys.argv[1], int(sys.argv[2])), int(sys.argv[3])))
