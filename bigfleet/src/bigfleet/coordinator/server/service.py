"""The calls of the coordinator over gRPC: who may make them, and which status an error is.

Every call asks first whether this replica leads, then who is calling, then for the arguments. A
certificate without a name is refused before anything of the request is looked at. What
the calls do is the coordinator's.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NoReturn

import grpc
import grpc.aio

from bigfleet.coordinator.errors import CoordinatorError, NotLeaderError
from bigfleet.coordinator.leadership.leader_state import LeaderState
from bigfleet.coordinator.server import listings
from bigfleet.coordinator.server.coordinator import Coordinator
from bigfleet.coordinator.state import (
    AssignDomain,
    BindCluster,
    Command,
    ProviderEntry,
    RefusalError,
    RegisterProvider,
    RemoveProvider,
    RemoveShard,
    UnassignDomain,
)
from bigfleet.coordinator.store.errors import SnapshotError, SnapshotMissingError, StoreError
from bigfleet.wire.identity import (
    COORDINATOR_ADMIN,
    COORDINATOR_READ,
    NO_NAME,
    Surface,
    coordinator_report,
    identity_of,
    refuse_nameless,
    require,
)
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import coordinator_pb2_grpc as rpc

Code = grpc.StatusCode
Context = grpc.aio.ServicerContext[object, object]
SERVICE: Final = "bigfleet.v1alpha1.Coordinator"
LEADER_KEY: Final = "bigfleet-leader"
CHUNK_BYTES: Final = 1 << 20
_log = logging.getLogger(__name__)


class CoordinatorServicer(rpc.CoordinatorServicer):
    """All calls. `add_coordinator` serves them."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    # -- reports ---------------------------------------------------------------------------------

    async def ReportShard(self, request: pb.ShardReport, context: Context) -> pb.ReportAck:  # noqa: N802
        """A shard's heartbeat."""
        return pb.ReportAck.FromString(await self.report(request, context))

    async def report(self, request: pb.ShardReport, context: Context) -> bytes:
        """The same, with an answer that is encoded already."""
        await self._leader_state(context)
        if identity_of(context) == NO_NAME:
            self._coordinator.metrics.identity_rejected("shard")
            await refuse_nameless(context, "ReportShard", "coordinator rejected shard identity")
        if not request.shard_id:
            await context.abort(Code.INVALID_ARGUMENT, "shard_id is empty: it is required")
        surface = coordinator_report(request.shard_id)
        await self._admit(context, surface, "shard", "ReportShard")
        try:
            return (await self._coordinator.report(request)).encode()
        except (CoordinatorError, RefusalError) as error:
            await refuse(context, error)

    # -- writes ----------------------------------------------------------------------------------

    async def AssignDomain(  # noqa: N802
        self, request: pb.AssignDomainRequest, context: Context
    ) -> pb.AssignDomainResponse:
        """A domain is a shard's."""
        await self._write(
            context,
            "AssignDomain",
            AssignDomain(request.topology_key, request.topology_value, request.shard_id),
        )
        return pb.AssignDomainResponse()

    async def UnassignDomain(  # noqa: N802
        self, request: pb.UnassignDomainRequest, context: Context
    ) -> pb.UnassignDomainResponse:
        """A domain belongs to no shard."""
        await self._write(
            context, "UnassignDomain", UnassignDomain(request.topology_key, request.topology_value)
        )
        return pb.UnassignDomainResponse()

    async def RemoveShard(  # noqa: N802
        self, request: pb.RemoveShardRequest, context: Context
    ) -> pb.RemoveShardResponse:
        """A shard is no more."""
        await self._write(context, "RemoveShard", RemoveShard(request.shard_id))
        return pb.RemoveShardResponse()

    async def BindCluster(  # noqa: N802
        self, request: pb.BindClusterRequest, context: Context
    ) -> pb.BindClusterResponse:
        """A cluster belongs to a shard."""
        await self._write(context, "BindCluster", BindCluster(request.cluster_id, request.shard_id))
        return pb.BindClusterResponse()

    async def SetQuota(  # noqa: N802
        self, request: pb.SetQuotaRequest, context: Context
    ) -> pb.SetQuotaResponse:
        """A whole allocation."""
        await self._admin(context, "SetQuota")
        slices = dict(request.per_shard)
        await self._do(
            context, lambda: self._coordinator.set_quota(request.provider, request.region, slices)
        )
        return pb.SetQuotaResponse()

    async def RegisterProvider(  # noqa: N802
        self, request: pb.RegisterProviderRequest, context: Context
    ) -> pb.RegisterProviderResponse:
        entry = request.provider
        provider = ProviderEntry(entry.name, entry.address, entry.region, tuple(entry.shards))
        await self._write(context, "RegisterProvider", RegisterProvider(provider))
        return pb.RegisterProviderResponse()

    async def RemoveProvider(  # noqa: N802
        self, request: pb.RemoveProviderRequest, context: Context
    ) -> pb.RemoveProviderResponse:
        """A provider is no more."""
        await self._write(context, "RemoveProvider", RemoveProvider(request.name))
        return pb.RemoveProviderResponse()

    async def JoinRaftCluster(  # noqa: N802
        self, request: pb.JoinRaftClusterRequest, context: Context
    ) -> pb.JoinRaftClusterResponse:
        """Not offered, on any replica."""
        await self._admit(context, COORDINATOR_ADMIN, "admin", "JoinRaftCluster")
        await context.abort(
            Code.UNIMPLEMENTED,
            "members belong to the replicated store: add one with the store's own tools, and start "
            "a coordinator with the same --store",
        )
        raise AssertionError("abort does not return")

    async def SnapshotSave(  # noqa: N802
        self, request: pb.SnapshotSaveRequest, context: Context
    ) -> AsyncIterator[pb.SnapshotSaveChunk]:
        """What it is in one frame, then its bytes."""
        await self._admin(context, "SnapshotSave")
        try:
            snapshot = await self._coordinator.snapshot()
        except (CoordinatorError, StoreError) as error:
            await refuse(context, error)
        yield pb.SnapshotSaveChunk(meta_json=snapshot.meta_json)
        for begin in range(0, len(snapshot.data), CHUNK_BYTES):
            yield pb.SnapshotSaveChunk(data=snapshot.data[begin : begin + CHUNK_BYTES])

    # -- reads -----------------------------------------------------------------------------------

    async def ListShards(  # noqa: N802
        self, request: pb.ListShardsRequest, context: Context
    ) -> pb.ListShardsResponse:
        """All registered shards."""
        return listings.shards(await self._read(context, "ListShards"))

    async def ListDomainAssignments(  # noqa: N802
        self, request: pb.ListDomainAssignmentsRequest, context: Context
    ) -> pb.ListDomainAssignmentsResponse:
        return await listings.domains(await self._read(context, "ListDomainAssignments"))

    async def ListShardReports(  # noqa: N802
        self, request: pb.ListShardReportsRequest, context: Context
    ) -> pb.ListShardReportsResponse:
        """The latest reports."""
        return listings.reports(await self._read(context, "ListShardReports"), request.shard_id)

    async def ListQuotas(  # noqa: N802
        self, request: pb.ListQuotasRequest, context: Context
    ) -> pb.ListQuotasResponse:
        """All allocations."""
        return listings.quotas(await self._read(context, "ListQuotas"))

    async def ListProviders(  # noqa: N802
        self, request: pb.ListProvidersRequest, context: Context
    ) -> pb.ListProvidersResponse:
        return listings.providers(await self._read(context, "ListProviders"))

    async def ListClusters(  # noqa: N802
        self, request: pb.ListClustersRequest, context: Context
    ) -> pb.ListClustersResponse:
        return listings.clusters(await self._read(context, "ListClusters"))

    async def ListInstructions(  # noqa: N802
        self, request: pb.ListInstructionsRequest, context: Context
    ) -> pb.ListInstructionsResponse:
        """What waits for shards."""
        return listings.instructions(
            await self._read(context, "ListInstructions"), request.shard_id
        )

    async def ListMoves(  # noqa: N802
        self, request: pb.ListMovesRequest, context: Context
    ) -> pb.ListMovesResponse:
        """Moves between shards."""
        leader_state = await self._read(context, "ListMoves")
        return listings.moves(
            self._coordinator.rebalancer.moves(leader_state), request.include_done
        )

    # -- what they have in common ----------------------------------------------------------------

    async def _leader_state(self, context: Context) -> LeaderState:
        try:
            return self._coordinator.lead()
        except NotLeaderError as error:
            await refuse(context, error)

    async def _admit(self, context: Context, surface: Surface, label: str, method: str) -> None:
        if not surface.lets_in(identity_of(context)):
            self._coordinator.metrics.identity_rejected(label)
        await require(context, surface, method)

    async def _admin(self, context: Context, method: str) -> None:
        await self._leader_state(context)
        await self._admit(context, COORDINATOR_ADMIN, "admin", method)
        who = identity_of(context) or "plaintext"
        _log.info("admin request", extra={"method": method, "identity": who})

    async def _read(self, context: Context, method: str) -> LeaderState:
        leader_state = await self._leader_state(context)
        await self._admit(context, COORDINATOR_READ, "read", method)
        return leader_state

    async def _write(self, context: Context, method: str, command: Command) -> None:
        await self._admin(context, method)
        await self._do(context, lambda: self._coordinator.apply(command))

    async def _do(self, context: Context, act: Callable[[], Awaitable[None]]) -> None:
        try:
            await act()
        except (CoordinatorError, RefusalError) as error:
            await refuse(context, error)


async def refuse(context: Context, error: Exception) -> NoReturn:
    """End a call with the status of an error."""
    trailing: tuple[tuple[str, str], ...] = ()
    if isinstance(error, NotLeaderError):
        code = Code.FAILED_PRECONDITION
        if error.leader:
            trailing = ((LEADER_KEY, error.leader),)
    elif isinstance(error, RefusalError):
        code = getattr(Code, error.code)
    elif isinstance(error, SnapshotMissingError):
        code = Code.NOT_FOUND
    elif isinstance(error, SnapshotError):
        code = Code.INTERNAL
    else:
        code = Code.UNAVAILABLE
    await context.abort(code, str(error), trailing)
    raise AssertionError("abort does not return")


def add_coordinator(server: grpc.aio.Server, coordinator: Coordinator) -> None:
    """Serve a coordinator on a server that has not been started.

    ReportShard answers with bytes: what is assigned may be large and is kept encoded.
    """
    servicer = CoordinatorServicer(coordinator)
    handler: grpc.RpcMethodHandler[pb.ShardReport, bytes]
    handler = grpc.unary_unary_rpc_method_handler(
        servicer.report,
        request_deserializer=pb.ShardReport.FromString,
    )
    # The first that knows a method serves it.
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE, {"ReportShard": handler}),)
    )
    rpc.add_CoordinatorServicer_to_server(servicer, server)
