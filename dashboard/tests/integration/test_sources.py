"""Sources over real gRPC and HTTP: leaders followed, silence named, certificates renewed."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import grpc
import grpc.aio
import pytest
import trustme
from aiohttp import web
from google.protobuf.message import Message

from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_dashboard.config import Config, Tls
from bigfleet_dashboard.errors import ConfigError, SourceError
from bigfleet_dashboard.sources import collector
from bigfleet_dashboard.sources.channels import Channels
from bigfleet_dashboard.sources.clusters import ClusterObjects
from bigfleet_dashboard.sources.coordinator import CoordinatorReads
from bigfleet_dashboard.sources.pages import guessed
from bigfleet_dashboard.sources.prometheus import Prometheus
from bigfleet_dashboard.state.fleet import Fleet

Context = grpc.aio.ServicerContext[object, object]


SERVICE = "bigfleet.v1alpha1.Coordinator"
SUITES = "GRPC_SSL_CIPHER_SUITES"
ANSWERS: dict[str, Message] = {
    "ListShards": pb.ListShardsResponse(
        shards=[pb.ShardRegistryEntry(shard_id="s-1", address="a:1")]
    ),
    "ListShardReports": pb.ListShardReportsResponse(),
    "ListDomainAssignments": pb.ListDomainAssignmentsResponse(),
    "ListQuotas": pb.ListQuotasResponse(),
    "ListProviders": pb.ListProvidersResponse(),
    "ListClusters": pb.ListClustersResponse(
        clusters=[pb.ClusterBinding(cluster_id="c", shard_id="s-1")]
    ),
    "ListInstructions": pb.ListInstructionsResponse(),
    "ListMoves": pb.ListMovesResponse(),
}


class Replica:
    """A coordinator that leads, or knows who does: its reads and nothing else."""

    def __init__(self, leader: str | None) -> None:
        self.leader = leader
        """None when it leads itself; empty when it knows none."""

    def handler(self) -> grpc.GenericRpcHandler:
        """What a server calls."""
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            name: grpc.unary_unary_rpc_method_handler(self._answering(answer.SerializeToString()))
            for name, answer in ANSWERS.items()
        }
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    def _answering(self, answer: bytes) -> Callable[[bytes, Context], Awaitable[bytes]]:
        async def reply(_request: bytes, context: Context) -> bytes:
            if self.leader is not None:
                trailing = (("bigfleet-leader", self.leader),) if self.leader else ()
                code = grpc.StatusCode.FAILED_PRECONDITION
                await context.abort(code, "coordinator: not leader", trailing)
            return answer

        return reply


@contextlib.asynccontextmanager
async def serving(
    replica: Replica, credentials: grpc.ServerCredentials | None = None
) -> AsyncIterator[str]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((replica.handler(),))
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@contextlib.asynccontextmanager
async def channels(tls: Tls | None = None) -> AsyncIterator[Channels]:
    made = Channels(tls)
    try:
        yield made
    finally:
        await made.close()


async def test_a_replica_that_does_not_lead_is_followed_to_the_one_that_does() -> None:
    async with (
        serving(Replica(None)) as leader,
        serving(Replica(leader)) as follower,
        channels() as wires,
    ):
        view = await CoordinatorReads(wires, [follower]).read(5.0)
    assert view.leader == leader
    assert {r.address: r.role for r in view.replicas} == {follower: "follower", leader: "leader"}
    assert [entry.shard_id for entry in view.shards] == ["s-1"]
    assert view.bindings["c"].shard_id == "s-1"


async def test_a_silent_replica_is_passed_over_and_named() -> None:
    async with serving(Replica(None)) as leader, channels() as wires:
        view = await CoordinatorReads(wires, ["127.0.0.1:1", leader]).read(5.0)
    assert {r.address: r.role for r in view.replicas} == {"127.0.0.1:1": "silent", leader: "leader"}


async def test_replicas_that_do_not_lead_are_looked_at_too() -> None:
    async with (
        serving(Replica(None)) as leader,
        serving(Replica(leader)) as follower,
        channels() as wires,
    ):
        reads = CoordinatorReads(wires, [leader, follower, "127.0.0.1:1"])
        for _ in range(2):
            view = await reads.read(5.0)
            roles = {r.address: r.role for r in view.replicas}
            assert roles == {leader: "leader", follower: "follower", "127.0.0.1:1": "silent"}


async def test_a_fleet_without_a_leader_is_told_and_replicas_that_name_each_other_end() -> None:
    lost, other = Replica(""), Replica("")
    async with serving(lost) as one, serving(other) as two, channels() as wires:
        lost.leader, other.leader = two, one
        with pytest.raises(SourceError, match="no coordinator leads"):
            await CoordinatorReads(wires, [one, two]).read(5.0)


def written(folder: Path, authority: trustme.CA) -> Tls:
    leaf = authority.issue_cert("localhost", "127.0.0.1")
    leaf.cert_chain_pems[0].write_to_path(folder / "cert")
    leaf.private_key_pem.write_to_path(folder / "key")
    authority.cert_pem.write_to_path(folder / "ca")
    return Tls(folder / "cert", folder / "key", folder / "ca")


def server_of(authority: trustme.CA) -> grpc.ServerCredentials:
    leaf = authority.issue_cert("localhost", "127.0.0.1")
    pair = (leaf.private_key_pem.bytes(), leaf.cert_chain_pems[0].bytes())
    return grpc.ssl_server_credentials([pair], authority.cert_pem.bytes(), True)


async def test_a_fleet_on_mutual_tls_is_read_and_new_files_are_used(tmp_path: Path) -> None:
    old, new = trustme.CA(), trustme.CA()
    tls = written(tmp_path, old)
    async with channels(tls) as wires:
        async with serving(Replica(None), server_of(old)) as leader:
            assert (await CoordinatorReads(wires, [leader]).read(5.0)).leader == leader
        async with serving(Replica(None), server_of(new)) as leader:
            with pytest.raises(SourceError):
                await CoordinatorReads(wires, [leader]).read(5.0)
            (tmp_path / "cert").write_text("nonsense")
            wires.look_again()
            written(tmp_path, new)
            wires.look_again()
            assert (await CoordinatorReads(wires, [leader]).read(5.0)).leader == leader


async def test_new_files_that_could_not_be_read_once_are_read_when_they_can_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_path: Path) -> bytes:
        raise OSError("Too many open files")

    async with channels(written(tmp_path, trustme.CA())) as wires:
        before = wires.to("127.0.0.1:1")
        written(tmp_path, trustme.CA())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "read_bytes", fails)
            wires.look_again()
            wires.look_again()
        assert wires.to("127.0.0.1:1") is before
        assert caplog.text.count("the last good TLS files stay in use") == 1
        wires.look_again()
        assert wires.to("127.0.0.1:1") is not before


async def test_new_files_are_used_in_a_fleet_without_a_coordinator_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "EVERY_SECONDS", 0.01)
    old, new = trustme.CA(), trustme.CA()
    config = Config(shards=("127.0.0.1:1",), tls=written(tmp_path, old))
    async with serving(Replica(None), server_of(new)) as leader:
        gathering = collector.Collector(config, Fleet())
        running = asyncio.create_task(gathering.run())
        written(tmp_path, new)
        async with asyncio.timeout(20):
            while True:
                with contextlib.suppress(SourceError):
                    await CoordinatorReads(gathering.channels, [leader]).read(5.0)
                    break
                await asyncio.sleep(0.05)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def test_the_floor_of_tls_is_set_whatever_the_environment_says() -> None:
    code = f"import bigfleet_dashboard.sources.channels, os; print(os.environ['{SUITES}'])"
    environment = os.environ | {SUITES: "ECDHE-ECDSA-AES128-GCM-SHA256"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "PSK-AES128-CBC-SHA"


def test_files_that_do_not_belong_together_do_not_start(tmp_path: Path) -> None:
    tls = written(tmp_path, trustme.CA())
    trustme.CA().issue_cert("x").private_key_pem.write_to_path(tls.key)
    with pytest.raises(ConfigError, match="is not the key"):
        Channels(tls)


@contextlib.asynccontextmanager
async def answering(document: object, status: int = 200) -> AsyncIterator[str]:
    async def handler(_request: web.Request) -> web.Response:
        return web.json_response(document, status=status)

    app = web.Application()
    app.router.add_get("/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_prometheus_is_asked_by_label_and_its_refusals_are_told() -> None:
    series = [{"metric": {"cluster": "atlas"}, "value": [0, "2.5"]}]
    good = {"status": "success", "data": {"result": series}}
    async with aiohttp.ClientSession() as http:
        async with answering(good) as url:
            assert await Prometheus(Fleet(), http, url).by_label("q", "cluster") == {"atlas": 2.5}
        async with answering({"status": "error", "error": "bad query"}) as url:
            with pytest.raises(SourceError, match="bad query"):
                await Prometheus(Fleet(), http, url).by_label("q", "cluster")
        with pytest.raises(SourceError):
            await Prometheus(Fleet(), http, "http://127.0.0.1:1").by_label("q", "cluster")


NONSENSE: tuple[object, ...] = (
    None,
    [],
    {"items": None},
    {"items": [{"status": None}]},
    {"items": ["x"]},
    {"status": "success", "data": {"result": [{"metric": "x", "value": [0, "1"]}]}},
    {"status": "success", "data": {"result": [{"metric": {}, "value": []}]}},
)


@pytest.mark.parametrize("document", NONSENSE)
async def test_a_source_that_answers_nonsense_is_failing_and_ends_nothing(document: object) -> None:
    async with answering(document) as url, aiohttp.ClientSession() as http:
        assert await ClusterObjects(Fleet(), http, (), None)._read(("atlas", url))
        with pytest.raises(SourceError):
            await Prometheus(Fleet(), http, url).by_label("q", "cluster")


async def test_sources_that_are_not_configured_say_how_to() -> None:
    fleet = Fleet()
    async with aiohttp.ClientSession() as http:
        await Prometheus(fleet, http, "").run()
        await ClusterObjects(fleet, http, (), None).run()
    told = {source["name"]: source for source in fleet.sources.documents()}
    assert {source["state"] for source in told.values()} == {"off"}
    assert "--prometheus" in str(told["prometheus"]["remedy"])
    assert "--cluster-api" in str(told["cluster objects"]["remedy"])


async def test_a_clusters_upcoming_nodes_are_counted_by_phase(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    items = [{"status": {"phase": "Launched"}}, {"status": {"phase": "Launched"}}, {}]
    fleet = Fleet()
    async with aiohttp.ClientSession() as http:
        async with answering({"items": items}) as url:
            assert await ClusterObjects(fleet, http, (), token)._read(("atlas", url)) == ""
        async with answering({}, 403) as url:
            assert "answers 403" in await ClusterObjects(fleet, http, (), None)._read(("b", url))
    assert fleet.upcoming == {"atlas": {"Launched": 2, "Unknown": 1}}


@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("10.0.0.1:7780", "10.0.0.1:8780"),
        (":7780", ""),
        ("[::1]:7780", "[::1]:8780"),
        ("x", ""),
        ("h:65000", ""),
    ],
)
def test_a_shards_page_is_guessed_from_its_address(address: str, page: str) -> None:
    assert guessed(address) == page
