"""A shard as a process: it starts without any peer, says when it is of use, and stops in order."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bigfleet.observe.pages import serve_pages
from bigfleet.provider import ProviderSite
from bigfleet.shard.errors import DirectoryError
from bigfleet.shard.server.process import ServedShard, ServerOptions, serve
from bigfleet.shard.server.settings import ShardConfig
from bigfleet.shard.state.errors import EpochError
from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import shardread_pb2, shardread_pb2_grpc
from bigfleet_base.http import HttpServer

AWAY = (ProviderSite("away", "127.0.0.1:1"),)


@asynccontextmanager
async def served(tuning: ShardConfig, serving: ServerOptions) -> AsyncIterator[ServedShard]:
    """A shard that is up; stopped in order afterwards."""
    stop = asyncio.Event()
    up: asyncio.Future[ServedShard] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(tuning, serving, stop, up.set_result))
    await asyncio.wait((task, up), return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        await task
    try:
        yield up.result()
    finally:
        stop.set()
        async with asyncio.timeout(10.0):
            await task


def local(folder: Path, **rest: Any) -> ServerOptions:
    return ServerOptions("127.0.0.1:0", "127.0.0.1:0", folder, **rest)


async def page(url: str) -> tuple[int, str]:
    def get() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return int(answer.status), str(answer.read().decode())
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    return await asyncio.to_thread(get)


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where the HTTP servers of a test listen."""
    found: list[str] = []

    def noted(*given: Any) -> HttpServer | None:
        server = serve_pages(*given)
        if server is not None:
            found.append(f"http://{server.address}")
        return server

    monkeypatch.setattr("bigfleet.shard.server.process.serve_pages", noted)
    return found


async def test_it_starts_without_any_peer_and_says_whom_it_waits_for(
    tmp_path: Path, pages: list[str]
) -> None:
    async with served(ShardConfig("s-1", providers=AWAY), local(tmp_path)):
        assert (await page(f"{pages[0]}/healthz"))[0] == 200
        code, words = await page(f"{pages[0]}/readyz")
        assert code == 503
        assert "waiting for the first List of provider away" in words


async def test_after_a_while_it_is_ready_all_the_same(tmp_path: Path, pages: list[str]) -> None:
    tuning = ShardConfig("s-1", providers=AWAY, ready_after=0.3, cycle_interval=0.2)
    async with served(tuning, local(tmp_path)) as listening:
        for _ in range(200):
            code, words = await page(f"{pages[0]}/readyz")
            if code == 200 and listening.shard.cycle.number:
                break
            await asyncio.sleep(0.05)
        assert code == 200, words
        assert listening.shard.cycle.number > 0


async def test_people_are_served_on_the_port_of_the_sessions(tmp_path: Path) -> None:
    async with served(ShardConfig("s-1"), local(tmp_path, paused=True)) as listening:
        channel = open_channel(listening.address, None)
        stub: Any = shardread_pb2_grpc.ShardAdminStub(channel)
        status = await stub.GetStatus(shardread_pb2.GetStatusRequest())
        await channel.close()
        assert status.shard_id == "s-1"
        assert status.paused


async def test_every_start_is_a_new_epoch(tmp_path: Path) -> None:
    epochs = []
    for _ in range(2):
        async with served(ShardConfig("s-1"), local(tmp_path)) as listening:
            epochs.append(listening.shard.epoch)
    assert epochs[1] == epochs[0] + 1


async def test_an_audit_log_is_written_beside_the_data(tmp_path: Path) -> None:
    serving = local(tmp_path / "data", audit_log=tmp_path / "audit.jsonl")
    async with served(ShardConfig("s-1"), serving) as listening:
        assert listening.shard.world.audit is not None


async def test_an_unreadable_epoch_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "epoch").write_text("seven")
    with pytest.raises(EpochError, match="which is not an epoch"):
        async with served(ShardConfig("s-1"), local(tmp_path)):
            pass


async def test_another_shards_directory_stops_the_start_and_stays_as_it_is(tmp_path: Path) -> None:
    async with served(ShardConfig("s-2"), local(tmp_path)):
        pass
    before = (tmp_path / "epoch").read_text()
    with pytest.raises(DirectoryError, match=r"'s-2'.*'s-3'"):
        async with served(ShardConfig("s-3"), local(tmp_path)):
            pass
    assert (tmp_path / "epoch").read_text() == before
