"""Coordinators behind real gRPC, and every call one can make of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc
import grpc.aio

from bigfleet.coordinator.server.service import SERVICE, add_coordinator
from bigfleet.wire.server import WireServer
from bigfleet.wire.server_tls import ServerTls
from bigfleet.wire.tls import TlsFiles
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import coordinator_pb2_grpc as rpc
from coordinators import Fleet, running

READS = {
    "ListShards": pb.ListShardsRequest(),
    "ListDomainAssignments": pb.ListDomainAssignmentsRequest(),
    "ListShardReports": pb.ListShardReportsRequest(),
    "ListQuotas": pb.ListQuotasRequest(),
    "ListProviders": pb.ListProvidersRequest(),
    "ListClusters": pb.ListClustersRequest(),
    "ListInstructions": pb.ListInstructionsRequest(),
    "ListMoves": pb.ListMovesRequest(),
}
WRITES = {
    "AssignDomain": pb.AssignDomainRequest(),
    "UnassignDomain": pb.UnassignDomainRequest(),
    "RemoveShard": pb.RemoveShardRequest(),
    "SetQuota": pb.SetQuotaRequest(),
    "RegisterProvider": pb.RegisterProviderRequest(),
    "RemoveProvider": pb.RemoveProviderRequest(),
    "BindCluster": pb.BindClusterRequest(),
}


@dataclass(frozen=True)
class Said:
    """How a call ended."""

    code: str
    text: str = ""
    leader: str = ""
    answers: Sequence[object] = field(default=())


@asynccontextmanager
async def served(fleet: Fleet, tls: TlsFiles | None = None) -> AsyncIterator[str]:
    """A coordinator that runs behind gRPC; where."""
    server = WireServer((SERVICE,), None if tls is None else ServerTls(tls))
    add_coordinator(server.grpc, fleet.coordinator)
    address = await server.start("127.0.0.1:0")
    fleet.coordinator.election.address = address
    try:
        async with running(fleet):
            yield address
    finally:
        await server.stop(0)


async def call(
    channel: grpc.aio.Channel, method: str, request: object, seconds: float = 20.0
) -> Said:
    """Make one call, whatever it answers."""
    stub = rpc.CoordinatorStub(channel)
    made = getattr(stub, method)(request, timeout=seconds)
    try:
        if method == "SnapshotSave":
            return Said("OK", answers=[chunk async for chunk in made])
        return Said("OK", answers=[await made])
    except grpc.aio.AioRpcError as error:
        trailing = dict(error.trailing_metadata() or ())
        leader = str(trailing.get("bigfleet-leader", ""))
        return Said(error.code().name, error.details() or "", leader)


async def holds(condition: Callable[[], bool]) -> None:
    """Wait for something to hold, at most as long as a slow machine may need."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the state is of many parts
            await asyncio.sleep(0.01)
