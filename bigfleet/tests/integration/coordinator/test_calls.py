"""Every call over real gRPC: its answer, and each refusal by its status."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from bigfleet.coordinator.server.service import CHUNK_BYTES, SERVICE
from bigfleet.coordinator.state import Move, MovePhase, PlanMoves, StepMove, Tier
from bigfleet.coordinator.store.errors import SnapshotError, StoreError, StoreUnavailableError
from bigfleet.coordinator.store.interface import Snapshot
from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinator_calls import READS, WRITES, Said, call, holds, served
from coordinators import Fleet
from memory_store import MemoryStore, Shared


class Served:
    """A coordinator that leads, and a channel to it."""

    def __init__(self, fleet: Fleet, channel: grpc.aio.Channel) -> None:
        self.fleet, self.channel = fleet, channel

    async def call(self, method: str, request: object, seconds: float = 20.0) -> Said:
        return await call(self.channel, method, request, seconds)

    async def answer(self, method: str, request: object) -> object:
        said = await self.call(method, request)
        assert said.code == "OK", said
        return said.answers[0]


@pytest.fixture
async def there() -> AsyncIterator[Served]:
    fleet = Fleet()
    async with served(fleet) as address, open_channel(address, None) as channel:
        await holds(lambda: fleet.coordinator.election.is_leader)
        yield Served(fleet, channel)


@pytest.fixture
async def two_shards(there: Served) -> Served:
    for shard in ("s-2", "s-1"):
        await there.answer("ReportShard", there.fleet.next_report(shard))
    return there


async def test_a_report_over_the_wire_brings_everything_back(two_shards: Served) -> None:
    domain = pb.AssignDomainRequest(topology_key="zone", topology_value="a", shard_id="s-1")
    await two_shards.answer("AssignDomain", domain)
    answer = await two_shards.answer("ReportShard", two_shards.fleet.next_report("s-1"))
    assert isinstance(answer, pb.ReportAck)
    assert answer.acknowledged
    assert answer.coordinator_term == 1
    assert answer.instructions[0].assign_domain.topology_value == "a"
    assert answer.assignments.domains[0].topology_value == "a"
    assert answer.assignments.revision == two_shards.fleet.coordinator.lead().state.revision


async def test_lists_are_in_their_promised_orders(two_shards: Served) -> None:
    for shard, key, value in (
        ("s-2", "zone", "b"), ("s-2", "rack", "z"), ("s-1", "zone", "c"), ("s-2", "zone", "a"),
    ):  # fmt: skip
        request = pb.AssignDomainRequest(topology_key=key, topology_value=value, shard_id=shard)
        await two_shards.answer("AssignDomain", request)
    for provider, region in (("q", ""), ("p", "us"), ("p", "eu")):
        quota = pb.SetQuotaRequest(provider=provider, region=region, per_shard={"s-1": 1})
        await two_shards.answer("SetQuota", quota)
    for name in ("q", "p"):
        entry = pb.ProviderEntry(name=name, address=f"{name}:9001", shards=["s-9"])
        await two_shards.answer("RegisterProvider", pb.RegisterProviderRequest(provider=entry))
    for cluster in ("c-2", "c-1"):
        bind = pb.BindClusterRequest(cluster_id=cluster, shard_id="s-1")
        await two_shards.answer("BindCluster", bind)

    answers = {name: await two_shards.answer(name, request) for name, request in READS.items()}
    shards = answers["ListShards"]
    assert isinstance(shards, pb.ListShardsResponse)
    assert [one.shard_id for one in shards.shards] == ["s-1", "s-2"]
    assert all(one.last_heartbeat_unix_ns and one.registered_at_unix_ns for one in shards.shards)
    domains = answers["ListDomainAssignments"]
    assert isinstance(domains, pb.ListDomainAssignmentsResponse)
    assert [
        (one.shard_id, one.topology_key, one.topology_value) for one in domains.assignments
    ] == [("s-1", "zone", "c"), ("s-2", "rack", "z"), ("s-2", "zone", "a"), ("s-2", "zone", "b")]
    quotas = answers["ListQuotas"]
    assert isinstance(quotas, pb.ListQuotasResponse)
    assert [(one.provider, one.region) for one in quotas.allocations] == [
        ("p", "eu"), ("p", "us"), ("q", "")
    ]  # fmt: skip
    providers = answers["ListProviders"]
    assert isinstance(providers, pb.ListProvidersResponse)
    assert [(one.name, list(one.shards)) for one in providers.providers] == [
        ("p", ["s-9"]), ("q", ["s-9"])
    ]  # fmt: skip
    clusters = answers["ListClusters"]
    assert isinstance(clusters, pb.ListClustersResponse)
    assert [one.cluster_id for one in clusters.clusters] == ["c-1", "c-2"]
    reports = answers["ListShardReports"]
    assert isinstance(reports, pb.ListShardReportsResponse)
    assert [one.shard_id for one in reports.reports] == ["s-1", "s-2"]
    instructions = answers["ListInstructions"]
    assert isinstance(instructions, pb.ListInstructionsResponse)
    assert [one.shard_id for one in instructions.instructions] == ["s-1", "s-2", "s-2", "s-2"]


async def test_before_the_first_heartbeat_of_this_leader_it_is_0(two_shards: Served) -> None:
    leader_state = two_shards.fleet.coordinator.lead()
    await two_shards.fleet.store.shared.depose()
    await holds(lambda: two_shards.fleet.coordinator.election.is_leader)
    assert two_shards.fleet.coordinator.lead() is not leader_state
    shards = await two_shards.answer("ListShards", pb.ListShardsRequest())
    assert isinstance(shards, pb.ListShardsResponse)
    assert [one.last_heartbeat_unix_ns for one in shards.shards] == [0, 0]


A = pb.AssignDomainRequest
REFUSALS = [
    ("ReportShard", pb.ShardReport(cycle=1), "INVALID_ARGUMENT", "shard_id"),
    ("AssignDomain", A(topology_value="a", shard_id="s-1"), "INVALID_ARGUMENT", "topology_key"),
    ("AssignDomain", A(topology_key="z", shard_id="s-1"), "INVALID_ARGUMENT", "topology_value"),
    ("AssignDomain", A(topology_key="z", topology_value="a"), "INVALID_ARGUMENT", "shard_id"),
    ("AssignDomain", A(topology_key="z", topology_value="a", shard_id="x"), "NOT_FOUND", "'x'"),
    (
        "AssignDomain",
        A(topology_key="zone", topology_value="taken", shard_id="s-2"),
        "ALREADY_EXISTS",
        "belongs to shard 's-1'",
    ),
    ("UnassignDomain", pb.UnassignDomainRequest(), "INVALID_ARGUMENT", "topology_key"),
    (
        "UnassignDomain",
        pb.UnassignDomainRequest(topology_key="zone", topology_value="absent"),
        "OK",
        "",
    ),
    ("RemoveShard", pb.RemoveShardRequest(), "INVALID_ARGUMENT", "shard_id"),
    ("RemoveShard", pb.RemoveShardRequest(shard_id="x"), "NOT_FOUND", "'x'"),
    ("SetQuota", pb.SetQuotaRequest(per_shard={"s-1": 1}), "INVALID_ARGUMENT", "provider"),
    (
        "SetQuota",
        pb.SetQuotaRequest(provider="p", per_shard={"s-1": -1}),
        "INVALID_ARGUMENT",
        "below 0",
    ),
    (
        "SetQuota",
        pb.SetQuotaRequest(provider="p", per_shard={"s-1": 6}),
        "INVALID_ARGUMENT",
        "5 are announced",
    ),
    ("SetQuota", pb.SetQuotaRequest(provider="p", per_shard={"x": 1}), "NOT_FOUND", "'x'"),
    ("RegisterProvider", pb.RegisterProviderRequest(), "INVALID_ARGUMENT", "name"),
    (
        "RegisterProvider",
        pb.RegisterProviderRequest(provider=pb.ProviderEntry(name="p")),
        "INVALID_ARGUMENT",
        "address",
    ),
    ("RemoveProvider", pb.RemoveProviderRequest(), "INVALID_ARGUMENT", "name"),
    ("RemoveProvider", pb.RemoveProviderRequest(name="x"), "NOT_FOUND", "'x'"),
    ("BindCluster", pb.BindClusterRequest(shard_id="s-1"), "INVALID_ARGUMENT", "cluster_id"),
    ("BindCluster", pb.BindClusterRequest(cluster_id="c"), "INVALID_ARGUMENT", "shard_id"),
    ("BindCluster", pb.BindClusterRequest(cluster_id="c", shard_id="x"), "NOT_FOUND", "'x'"),
    ("JoinRaftCluster", pb.JoinRaftClusterRequest(), "UNIMPLEMENTED", "replicated store"),
]


async def test_each_refusal_has_its_status_and_says_why(two_shards: Served) -> None:
    quota = pb.QuotaAllocation(provider="p", per_shard={"s-1": 5})
    summary = pb.ShardSummary(quota_totals=[quota])
    await two_shards.fleet.report("s-1", summary=summary)
    await two_shards.fleet.report("s-2", summary=pb.ShardSummary())
    await two_shards.answer("AssignDomain", A(topology_key="zone", topology_value="taken", shard_id="s-1"))  # fmt: skip  # noqa: E501
    before = two_shards.fleet.store.shared.commits
    for method, request, code, words in REFUSALS:
        said = await two_shards.call(method, request)
        assert (method, said.code) == (method, code)
        assert words in said.text
    assert two_shards.fleet.store.shared.commits == before


async def test_a_store_that_does_not_take_a_write_is_unavailable(two_shards: Served) -> None:
    store = two_shards.fleet.store
    store.before_commit.append(StoreUnavailableError("quorum lost"))
    request = A(topology_key="zone", topology_value="a", shard_id="s-1")
    said = await two_shards.call("AssignDomain", request)
    assert (said.code, "quorum lost" in said.text) == ("UNAVAILABLE", True)
    store.before_commit.append(StoreUnavailableError("quorum lost"))
    said = await two_shards.call("ReportShard", two_shards.fleet.next_report("s-3"))
    assert said.code == "UNAVAILABLE"


async def test_a_follower_refuses_everything_and_names_the_leader() -> None:
    shared = Shared()
    leader, follower = Fleet(MemoryStore(shared), "c-1"), Fleet(MemoryStore(shared), "c-2")
    async with served(leader) as address:
        await holds(lambda: leader.coordinator.election.is_leader)
        async with served(follower) as other, open_channel(other, None) as channel:
            await holds(lambda: follower.coordinator.not_ready() == "")
            calls = {**READS, **WRITES, "ReportShard": pb.ShardReport()}
            for method, request in {**calls, "SnapshotSave": pb.SnapshotSaveRequest()}.items():
                said = await call(channel, method, request)
                assert said == Said("FAILED_PRECONDITION", "coordinator: not leader", address), (
                    method
                )
            join = await call(channel, "JoinRaftCluster", pb.JoinRaftClusterRequest())
            assert join.code == "UNIMPLEMENTED"


async def test_without_a_leader_none_is_named() -> None:
    fleet = Fleet()
    fleet.store.shared.is_away = True
    async with served(fleet) as address, open_channel(address, None) as channel:
        said = await call(channel, "ListShards", pb.ListShardsRequest())
        assert (said.code, said.leader) == ("FAILED_PRECONDITION", "")


async def test_a_snapshot_is_one_frame_of_meta_and_then_data(two_shards: Served) -> None:
    large = Snapshot(b'{"term": 1}', bytes(2 * CHUNK_BYTES + 5))
    two_shards.fleet.store.next_snapshot = large
    said = await two_shards.call("SnapshotSave", pb.SnapshotSaveRequest())
    frames = [one for one in said.answers if isinstance(one, pb.SnapshotSaveChunk)]
    assert [one.WhichOneof("payload") for one in frames] == ["meta_json", "data", "data", "data"]
    assert frames[0].meta_json == large.meta_json
    assert [len(one.data) for one in frames[1:]] == [CHUNK_BYTES, CHUNK_BYTES, 5]
    assert b"".join(one.data for one in frames[1:]) == large.data


async def test_a_snapshot_that_cannot_be_had_says_why(there: Served) -> None:
    said = await there.call("SnapshotSave", pb.SnapshotSaveRequest())
    assert said.code == "NOT_FOUND"
    failures: list[tuple[StoreError, str]] = [
        (SnapshotError("not JSON"), "INTERNAL"),
        (StoreUnavailableError("away"), "UNAVAILABLE"),
    ]
    for error, code in failures:
        there.fleet.store.next_snapshot = error
        said = await there.call("SnapshotSave", pb.SnapshotSaveRequest())
        assert (said.code, said.text) == (code, str(error))


async def test_moves_are_listed_and_those_that_are_over_when_asked(two_shards: Served) -> None:
    moves = (Move("m-1", Tier.IDLE, "s-1", "s-2", 3), Move("m-2", Tier.PREEMPT, "s-2", "s-1", 1))
    await two_shards.fleet.coordinator.apply(PlanMoves(moves))
    step = StepMove("m-1", MovePhase.ABANDONED, ("a",), reason="none to give")
    await two_shards.fleet.coordinator.apply(step)
    open_ones = await two_shards.answer("ListMoves", pb.ListMovesRequest())
    assert isinstance(open_ones, pb.ListMovesResponse)
    assert [(one.id, one.tier, one.phase) for one in open_ones.moves] == [
        ("m-2", pb.Move.TIER_PREEMPT, "planned")
    ]
    every = await two_shards.answer("ListMoves", pb.ListMovesRequest(include_done=True))
    assert isinstance(every, pb.ListMovesResponse)
    assert [one.id for one in every.moves] == ["m-1", "m-2"]
    one = every.moves[0]
    assert (one.donor, one.recipient, one.count, one.phase) == ("s-1", "s-2", 3, "abandoned")
    assert (list(one.machine_ids), one.reason) == (["a"], "none to give")
    assert one.created_unix_ns
    assert one.updated_unix_ns


async def test_liveness_and_reflection_answer_whatever_the_store_does() -> None:
    fleet = Fleet()
    fleet.store.shared.is_away = True
    async with served(fleet) as address, open_channel(address, None) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        alive = await health.Check(health_pb2.HealthCheckRequest(), timeout=20)
        assert alive.status == health_pb2.HealthCheckResponse.SERVING
        reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
        ask = reflection_pb2.ServerReflectionRequest(list_services="")
        async for answer in reflection.ServerReflectionInfo(iter([ask]), timeout=20):
            names = [one.name for one in answer.list_services_response.service]
            assert SERVICE in names
