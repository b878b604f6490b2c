"""A fleet with canned answers behind real gRPC, for tests of bigfleetctl.

Servers run in threads of their own, because a command brings its own event loop.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
from typer.testing import CliRunner, Result

from bigfleet.cli import output
from bigfleet.cli.ctl.context import Edge
from bigfleet.cli.ctl.main import app
from bigfleet.wire.tls import TlsFiles
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import coordinator_pb2_grpc, shardread_pb2_grpc
from bigfleet_api.v1alpha1 import provider_pb2 as provider
from bigfleet_api.v1alpha1 import shardread_pb2 as read

A = TypeVar("A")
SECOND = 1_000_000_000
NOW = 1_800_000_000 * SECOND
_OURS = ("COORDINATOR", "SHARD_ADDR", "TIMEOUT", "TLS_CERT", "TLS_KEY", "TLS_CA", "OUTPUT")


def ctl(
    *words: str,
    columns: int = 120,
    env: Mapping[str, str] | None = None,
    confirm: Callable[[str], bool] | None = None,
) -> Result:
    """What bigfleetctl printed, at a fixed moment and on a terminal of a chosen width."""
    output.out.width = output.err.width = columns
    variables: dict[str, str | None] = {f"BIGFLEETCTL_{name}": None for name in _OURS}
    variables |= {"NO_COLOR": "1", **(env or {})}
    edge = Edge(now=lambda: NOW, rest=_no_rest)
    if confirm is not None:
        edge = Edge(now=lambda: NOW, confirm=confirm, rest=_no_rest)
    return CliRunner(env=variables).invoke(app, list(words), obj=edge)


async def _no_rest(_seconds: float) -> None:
    """Try again at once, but let others go first."""
    await asyncio.sleep(0)


class Canned:
    """What was asked, and refusals to give instead of answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.refuses: dict[str, tuple[grpc.StatusCode, str]] = {}
        self.metadata: tuple[tuple[str, str], ...] = ()

    def methods(self) -> list[str]:
        """Names of all calls so far."""
        return [name for name, _ in self.asked]

    def last(self, method: str) -> Any:
        """The last request of one kind."""
        return [request for name, request in self.asked if name == method][-1]

    def answer(self, context: Any, request: Any, answer: A) -> A:
        method = type(request).__name__.removesuffix("Request")
        self.asked.append((method, request))
        refusal = self.refuses.get(method) or self.refuses.get("*")
        if refusal is not None:
            context.set_trailing_metadata(self.metadata)
            context.abort(*refusal)
        return answer


class CannedCoordinator(Canned, coordinator_pb2_grpc.CoordinatorServicer):
    """A coordinator that says what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.shards: list[pb.ShardRegistryEntry] = []
        self.clusters: list[pb.ClusterBinding] = []
        self.domains: list[pb.DomainAssignment] = []
        self.quotas: list[pb.QuotaAllocation] = []
        self.providers: list[pb.ProviderEntry] = []
        self.reports: list[pb.ShardReportSnapshot] = []
        self.instructions: list[pb.PendingInstruction] = []
        self.moves: list[pb.Move] = []
        self.snapshot: list[pb.SnapshotSaveChunk] = []

    def follows(self, leader: str = "") -> CannedCoordinator:
        """Lead no longer; name the leader if there is one."""
        self.refuses["*"] = (grpc.StatusCode.FAILED_PRECONDITION, "coordinator: not leader")
        self.metadata = (("bigfleet-leader", leader),) if leader else ()
        return self

    def ReportShard(self, request: pb.ShardReport, context: Any) -> pb.ReportAck:  # noqa: N802
        return self.answer(context, request, pb.ReportAck())

    def AssignDomain(  # noqa: N802
        self, request: pb.AssignDomainRequest, context: Any
    ) -> pb.AssignDomainResponse:
        return self.answer(context, request, pb.AssignDomainResponse())

    def UnassignDomain(  # noqa: N802
        self, request: pb.UnassignDomainRequest, context: Any
    ) -> pb.UnassignDomainResponse:
        return self.answer(context, request, pb.UnassignDomainResponse())

    def RemoveShard(  # noqa: N802
        self, request: pb.RemoveShardRequest, context: Any
    ) -> pb.RemoveShardResponse:
        return self.answer(context, request, pb.RemoveShardResponse())

    def ListShards(  # noqa: N802
        self, request: pb.ListShardsRequest, context: Any
    ) -> pb.ListShardsResponse:
        return self.answer(context, request, pb.ListShardsResponse(shards=self.shards))

    def ListDomainAssignments(  # noqa: N802
        self, request: pb.ListDomainAssignmentsRequest, context: Any
    ) -> pb.ListDomainAssignmentsResponse:
        answer = pb.ListDomainAssignmentsResponse(assignments=self.domains)
        return self.answer(context, request, answer)

    def ListShardReports(  # noqa: N802
        self, request: pb.ListShardReportsRequest, context: Any
    ) -> pb.ListShardReportsResponse:
        found = [r for r in self.reports if request.shard_id in ("", r.shard_id)]
        return self.answer(context, request, pb.ListShardReportsResponse(reports=found))

    def JoinRaftCluster(  # noqa: N802
        self, request: pb.JoinRaftClusterRequest, context: Any
    ) -> pb.JoinRaftClusterResponse:
        return self.answer(context, request, pb.JoinRaftClusterResponse())

    def SnapshotSave(  # noqa: N802
        self, request: pb.SnapshotSaveRequest, context: Any
    ) -> Iterator[pb.SnapshotSaveChunk]:
        yield from self.answer(context, request, self.snapshot)

    def SetQuota(  # noqa: N802
        self, request: pb.SetQuotaRequest, context: Any
    ) -> pb.SetQuotaResponse:
        return self.answer(context, request, pb.SetQuotaResponse())

    def ListQuotas(  # noqa: N802
        self, request: pb.ListQuotasRequest, context: Any
    ) -> pb.ListQuotasResponse:
        return self.answer(context, request, pb.ListQuotasResponse(allocations=self.quotas))

    def RegisterProvider(  # noqa: N802
        self, request: pb.RegisterProviderRequest, context: Any
    ) -> pb.RegisterProviderResponse:
        return self.answer(context, request, pb.RegisterProviderResponse())

    def RemoveProvider(  # noqa: N802
        self, request: pb.RemoveProviderRequest, context: Any
    ) -> pb.RemoveProviderResponse:
        return self.answer(context, request, pb.RemoveProviderResponse())

    def ListProviders(  # noqa: N802
        self, request: pb.ListProvidersRequest, context: Any
    ) -> pb.ListProvidersResponse:
        return self.answer(context, request, pb.ListProvidersResponse(providers=self.providers))

    def BindCluster(  # noqa: N802
        self, request: pb.BindClusterRequest, context: Any
    ) -> pb.BindClusterResponse:
        return self.answer(context, request, pb.BindClusterResponse())

    def ListClusters(  # noqa: N802
        self, request: pb.ListClustersRequest, context: Any
    ) -> pb.ListClustersResponse:
        return self.answer(context, request, pb.ListClustersResponse(clusters=self.clusters))

    def ListInstructions(  # noqa: N802
        self, request: pb.ListInstructionsRequest, context: Any
    ) -> pb.ListInstructionsResponse:
        found = [i for i in self.instructions if request.shard_id in ("", i.shard_id)]
        return self.answer(context, request, pb.ListInstructionsResponse(instructions=found))

    def ListMoves(  # noqa: N802
        self, request: pb.ListMovesRequest, context: Any
    ) -> pb.ListMovesResponse:
        over = ("done", "abandoned")
        found = [m for m in self.moves if request.include_done or m.phase not in over]
        return self.answer(context, request, pb.ListMovesResponse(moves=found))


@dataclass
class CannedShard(
    Canned, shardread_pb2_grpc.ShardReadServicer, shardread_pb2_grpc.ShardAdminServicer
):
    """A shard that says what it was given."""

    status: read.ShardStatus
    machines: list[provider.Machine] = field(default_factory=list)
    header: read.InspectNeedsHeader = field(default_factory=read.InspectNeedsHeader)
    needs: list[read.NeedView] = field(default_factory=list)
    decisions: list[list[read.Decision]] = field(default_factory=list)
    """One list for each watch; after the last one the stream stays open."""

    def __post_init__(self) -> None:
        super().__init__()

    def InspectNeeds(  # noqa: N802
        self, request: read.InspectNeedsRequest, context: Any
    ) -> Iterator[read.InspectNeedsResponse]:
        needs = [n for n in self.needs if request.cluster_id in ("", n.cluster_id)]
        header = read.InspectNeedsHeader()
        header.CopyFrom(self.header)
        header.total_needs = len(needs)
        yield self.answer(context, request, read.InspectNeedsResponse(header=header))
        for need in needs[: request.limit or None]:
            shown = read.NeedView()
            shown.CopyFrom(need)
            if not request.with_remedies:
                shown.ClearField("explanation")
            yield read.InspectNeedsResponse(need=shown)

    def ListMachines(  # noqa: N802
        self, request: read.ListMachinesRequest, context: Any
    ) -> Iterator[read.ListMachinesResponse]:
        found = [
            m
            for m in self.machines
            if (not request.states or m.state in request.states)
            and request.cluster_id in ("", m.cluster)
            and request.instance_type in ("", m.instance_type)
        ]
        found = self.answer(context, request, found)[: request.limit or None]
        for start in range(0, len(found), 2):
            yield read.ListMachinesResponse(machines=found[start : start + 2])

    def WatchDecisions(  # noqa: N802
        self, request: read.WatchDecisionsRequest, context: Any
    ) -> Iterator[read.Decision]:
        self.answer(context, request, None)
        context.send_initial_metadata(())
        yield from self.decisions.pop(0) if self.decisions else ()
        if not self.decisions:
            over = threading.Event()
            if context.add_callback(over.set):
                over.wait(60)

    def ExportScenario(  # noqa: N802
        self, request: read.ExportScenarioRequest, context: Any
    ) -> Iterator[read.ExportScenarioChunk]:
        yield from self.answer(context, request, [])

    def Pause(self, request: read.PauseRequest, context: Any) -> read.PauseResponse:  # noqa: N802
        return self.answer(context, request, read.PauseResponse())

    def Resume(self, request: read.ResumeRequest, context: Any) -> read.ResumeResponse:  # noqa: N802
        return self.answer(context, request, read.ResumeResponse())

    def ForgetCluster(  # noqa: N802
        self, request: read.ForgetClusterRequest, context: Any
    ) -> read.ForgetClusterResponse:
        return self.answer(context, request, read.ForgetClusterResponse())

    def GetStatus(self, request: read.GetStatusRequest, context: Any) -> read.ShardStatus:  # noqa: N802
        return self.answer(context, request, self.status)

    def DrainMachine(  # noqa: N802
        self, request: read.DrainMachineRequest, context: Any
    ) -> read.DrainMachineResponse:
        return self.answer(context, request, read.DrainMachineResponse())

    def ExcludeMachine(  # noqa: N802
        self, request: read.ExcludeMachineRequest, context: Any
    ) -> read.ExcludeMachineResponse:
        return self.answer(context, request, read.ExcludeMachineResponse())


@contextmanager
def serving(
    servicer: CannedCoordinator | CannedShard, tls: TlsFiles | None = None, *, old: bool = False
) -> Iterator[str]:
    """The address of a server; an old shard can be read, and knows nothing else."""
    server = grpc.server(ThreadPoolExecutor(max_workers=8))
    if isinstance(servicer, CannedCoordinator):
        coordinator_pb2_grpc.add_CoordinatorServicer_to_server(servicer, server)
    else:
        shardread_pb2_grpc.add_ShardReadServicer_to_server(servicer, server)
        if not old:
            shardread_pb2_grpc.add_ShardAdminServicer_to_server(servicer, server)
    if tls is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        pair = (tls.key.read_bytes(), tls.cert.read_bytes())
        credentials = grpc.ssl_server_credentials(
            [pair], tls.ca.read_bytes(), require_client_auth=True
        )
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


@contextmanager
def deaf() -> Iterator[str]:
    """An address on which no process listens, and no other can take."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def entry(shard: str, address: str, seconds_ago: int | None = 3) -> pb.ShardRegistryEntry:
    """A registered shard, heard so long ago, or never."""
    return pb.ShardRegistryEntry(
        shard_id=shard,
        address=address,
        registered_at_unix_ns=NOW - 86_400 * SECOND,
        last_heartbeat_unix_ns=0 if seconds_ago is None else NOW - seconds_ago * SECOND,
    )


def machine(
    machine_id: str,
    state: str,
    price: float = 0.5,
    *,
    cluster: str = "",
    instance_type: str = "m.large",
    error: str = "",
    host: str = "",
) -> provider.Machine:
    """A machine in a state, by its name on the wire without what all have in common."""
    return provider.Machine(
        id=machine_id,
        state=provider.MachineState.Value(f"MACHINE_STATE_{state}"),
        instance_type=instance_type,
        zone="eu-1a",
        capacity_type=provider.CAPACITY_TYPE_ON_DEMAND,
        price_per_hour=price,
        resources=provider.Resources(resources={"cpu": "4", "memory": "16Gi"}),
        labels={"topology.kubernetes.io/zone": "eu-1a"},
        cluster=cluster,
        last_error=error,
        host=provider.HostRef(provider="aws", ref=host) if host else None,
    )


def status(
    shard: str, sessions: Sequence[str] = (), *, reachable: bool = True, **more: Any
) -> read.ShardStatus:
    """How a shard with one provider is doing."""
    one = read.ProviderStatus(
        name="aws",
        address="aws:9001",
        reachable=reachable,
        last_list_unix_ns=NOW - 10 * SECOND,
        machines=6,
        last_error="" if reachable else "no process listens there",
    )
    return read.ShardStatus(
        shard_id=shard, epoch=4, cycle=412, sessions=sessions, providers=[one], **more
    )
