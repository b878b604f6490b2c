"""The log lines of a coordinator that keep their words: each is provoked once, and found."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from log_lines import Line, Said, look_for, of_records, promised

from bigfleet.coordinator.server.process import CoordinatorOptions, RunningCoordinator, serve
from bigfleet.coordinator.store.factory import open_store
from bigfleet.coordinator.store.interface import StateStore, StorePlace
from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from certificates import write_files
from coordinator_calls import call, holds, served
from coordinators import Fleet
from memory_store import MemoryStore

STRANGER = ["https://example.com/someone"]


class Ear(logging.Handler):
    """Keeps every record."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def heard(self, words: str) -> bool:
        return any(record.getMessage().startswith(words) for record in self.records)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Said]]:
    """Everything that was said while the stories ran."""
    ear, ours = Ear(), logging.getLogger("bigfleet")
    level = ours.level
    ours.addHandler(ear)
    ours.setLevel(logging.INFO)
    try:
        folder = tmp_path_factory.mktemp("coordinator")
        asyncio.run(_exports(folder / "good", folder / "exports", "snapshot exported", ear))
        (folder / "file").write_text("in the way")
        asyncio.run(_exports(folder / "bad", folder / "file", "snapshot export failed", ear))
        asyncio.run(_store_away(folder / "away", ear))
        asyncio.run(_strangers(folder / "strangers"))
        yield of_records(ear.records)
    finally:
        ours.removeHandler(ear)
        ours.setLevel(level)


@pytest.mark.parametrize("line", promised("coordinator"), ids=str)
def test_a_line_is_said_with_its_level_and_its_keys(said: list[Said], line: Line) -> None:
    look_for(line, said)


async def _lives(
    settings: CoordinatorOptions, enough: str, ear: Ear, store: StateStore | None = None
) -> None:
    """A coordinator's process, inside this one, until it has said enough."""
    stop = asyncio.Event()
    there: asyncio.Future[RunningCoordinator] = asyncio.get_running_loop().create_future()
    make = open_store if store is None else lambda *_: store
    life = asyncio.create_task(serve(settings, stop, make, on_listening=there.set_result))
    try:
        listening = await there
        if store is None:
            await holds(lambda: listening.coordinator.election.is_leader)
            async with open_channel(listening.address, None) as channel:
                report = pb.ShardReport(shard_id="s-1", shard_epoch=1, cycle=1)
                assert (await call(channel, "ReportShard", report)).code == "OK"
        await holds(lambda: ear.heard(enough))
    finally:
        stop.set()
        await life


def _serving(folder: Path, exports: Path | None = None) -> CoordinatorOptions:
    return CoordinatorOptions(
        replica="c-1",
        place=StorePlace("sqlite", "c-1", folder),
        listen="127.0.0.1:0",
        metrics_addr="0",
        export_dir=exports,
        version="1.2.3",
    )


async def _exports(folder: Path, exports: Path, enough: str, ear: Ear) -> None:
    # The first export of an empty store has nothing to write; the next life has.
    await _lives(_serving(folder), "raft membership established", ear)
    await _lives(_serving(folder, exports), enough, ear)


async def _store_away(folder: Path, ear: Ear) -> None:
    store = MemoryStore()
    store.shared.is_away = True
    await _lives(_serving(folder), "join attempt failed", ear, store)


async def _strangers(folder: Path) -> None:
    """Calls of three kinds by a caller whose certificate names no role."""
    ca, fleet = trustme.CA(), Fleet()
    files = write_files(folder / "server", ca, ["bigfleet://admin"])
    async with served(fleet, files) as address:
        await holds(lambda: fleet.coordinator.election.is_leader)
        stranger = write_files(folder / "stranger", ca, STRANGER).read()
        async with open_channel(address, stranger) as channel:
            for method, request in (
                ("ReportShard", pb.ShardReport(shard_id="s-1", shard_epoch=1, cycle=1)),
                ("ListShards", pb.ListShardsRequest()),
                ("AssignDomain", pb.AssignDomainRequest()),
            ):
                assert (await call(channel, method, request)).code == "PERMISSION_DENIED"
