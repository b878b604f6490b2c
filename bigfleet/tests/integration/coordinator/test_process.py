"""A coordinator as a process on its embedded store: start, probes, log lines, stop, start again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bigfleet.coordinator.server.process import CoordinatorOptions, RunningCoordinator, serve
from bigfleet.coordinator.server.service import SERVICE
from bigfleet.coordinator.store.errors import StoreLockedError
from bigfleet.coordinator.store.factory import open_store
from bigfleet.coordinator.store.interface import StorePlace
from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinator_calls import call, holds
from memory_store import MemoryStore


def serving(folder: Path, export_dir: Path | None = None) -> CoordinatorOptions:
    return CoordinatorOptions(
        replica="c-1",
        place=StorePlace("sqlite", "c-1", folder),
        listen="127.0.0.1:0",
        metrics_addr="127.0.0.1:0",
        export_dir=export_dir,
        version="1.2.3",
    )


@asynccontextmanager
async def process(
    settings: CoordinatorOptions, make_store: object = open_store
) -> AsyncIterator[RunningCoordinator]:
    """A coordinator's process, inside this one."""
    stop, there = asyncio.Event(), asyncio.get_running_loop().create_future()
    life = asyncio.create_task(
        serve(settings, stop, make_store, on_listening=there.set_result)  # type: ignore[arg-type]
    )
    done, _ = await asyncio.wait({life, there}, return_when=asyncio.FIRST_COMPLETED)
    if life in done:
        await life
    try:
        yield there.result()
    finally:
        stop.set()
        await life


def page(address: str, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://{address}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def test_it_starts_alone_serves_and_keeps_what_it_was_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    report = pb.ShardReport(shard_id="s-1", shard_epoch=1, cycle=1, known_clusters=["c"])
    async with process(serving(tmp_path / "data", tmp_path / "exports")) as one:
        await holds(lambda: one.coordinator.election.is_leader)
        async with open_channel(one.address, None) as channel:
            assert (await call(channel, "ReportShard", report)).code == "OK"
            saved = await call(channel, "SnapshotSave", pb.SnapshotSaveRequest())
            assert len(saved.answers) == 2
            health = health_pb2_grpc.HealthStub(channel)
            ask = health_pb2.HealthCheckRequest(service=SERVICE)
            ready = health_pb2.HealthCheckResponse.SERVING
            async with asyncio.timeout(20):
                async for answer in health.Watch(ask):
                    if answer.status == ready:
                        break
        status, text = await asyncio.to_thread(page, one.metrics_address, "/metrics")
        assert status == 200
        assert "bigfleet_coordinator_is_leader 1.0" in text
        assert 'bigfleet_coordinator_state_entries{table="clusters"} 1.0' in text
        assert "bigfleet_coordinator_snapshot_last_success_timestamp_seconds" in text
        assert await asyncio.to_thread(page, one.metrics_address, "/readyz") == (200, "ok\n")

    async with process(serving(tmp_path / "data")) as again:
        await holds(lambda: again.coordinator.election.is_leader)
        assert again.coordinator.lead().term == 2
        async with open_channel(again.address, None) as channel:
            said = await call(channel, "ListClusters", pb.ListClustersRequest())
            assert isinstance(said.answers[0], pb.ListClustersResponse)
            assert [one.cluster_id for one in said.answers[0].clusters] == ["c"]

    for words in (
        "coordinator started",
        "coordinator listening",
        "raft membership established",
        "metrics serving",
        "listening",
    ):
        said_so = [one for one in caplog.records if one.message.startswith(words)]
        assert said_so, words
    (joined,) = [one for one in caplog.records if getattr(one, "term", None) == 2][:1]
    assert getattr(joined, "id", "") == "c-1"


async def test_two_processes_do_not_share_a_file(tmp_path: Path) -> None:
    async with process(serving(tmp_path)) as one:
        await holds(lambda: one.coordinator.election.is_leader)
        with pytest.raises(StoreLockedError):
            async with asyncio.timeout(20):
                await serve(serving(tmp_path), asyncio.Event(), open_store)


async def test_without_its_store_it_lives_and_says_that_it_is_not_ready(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    store.shared.is_away = True

    def make(*_world: object) -> MemoryStore:
        return store

    async with process(serving(tmp_path), make) as one:
        status, text = await asyncio.to_thread(page, one.metrics_address, "/readyz")
        assert (status, "no leader is known" in text) == (503, True)
        assert await asyncio.to_thread(page, one.metrics_address, "/healthz") == (200, "ok\n")
        await holds(lambda: "join attempt failed; will retry" in caplog.text)
        store.shared.is_away = False
        await holds(lambda: one.coordinator.not_ready() == "")
