"""Who may make which call on mutual TLS: the coordinator's rows of the table, cell by cell."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import grpc.aio
import pytest
import trustme

from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from certificates import write_files
from coordinator_calls import READS, WRITES, call, holds, served
from coordinators import Fleet

CALLERS = {
    "cluster": ["bigfleet://cluster/c-1"],
    "shard": ["bigfleet://shard/s-1"],
    "other shard": ["bigfleet://shard/s-2"],
    "readonly": ["bigfleet://readonly"],
    "admin": ["bigfleet://admin"],
    "unknown": ["https://example.com/someone"],
    "two at once": ["bigfleet://admin", "bigfleet://readonly"],
}
REPORT = {"ReportShard": pb.ShardReport(shard_id="s-1", shard_epoch=1, cycle=1)}
ADMIN = {
    **WRITES,
    "JoinRaftCluster": pb.JoinRaftClusterRequest(),
    "SnapshotSave": pb.SnapshotSaveRequest(),
}
MAY = {
    "shard": {*REPORT},
    "readonly": {*READS},
    "admin": {*READS, *ADMIN},
}
WORDS = {
    **dict.fromkeys(REPORT, ("shard", "coordinator rejected shard identity")),
    **dict.fromkeys(READS, ("read", "coordinator rejected read identity")),
    **dict.fromkeys(ADMIN, ("admin", "coordinator rejected admin identity")),
}


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


class Guarded:
    """A coordinator on mutual TLS and a channel per caller."""

    def __init__(self, fleet: Fleet, address: str, folder: Path, ca: trustme.CA) -> None:
        self.fleet, self._address, self._folder, self._ca = fleet, address, folder, ca

    def channel(self, caller: str) -> grpc.aio.Channel:
        files = write_files(self._folder / caller.replace(" ", "-"), self._ca, CALLERS[caller])
        return open_channel(self._address, files.read())


@pytest.fixture
async def there(tmp_path: Path, ca: trustme.CA) -> AsyncIterator[Guarded]:
    fleet = Fleet()
    files = write_files(tmp_path / "server", ca, CALLERS["admin"])
    async with served(fleet, files) as address:
        await holds(lambda: fleet.coordinator.election.is_leader)
        yield Guarded(fleet, address, tmp_path, ca)


@pytest.mark.parametrize("caller", CALLERS)
async def test_a_caller_may_do_what_the_table_says(
    there: Guarded, caller: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with there.channel(caller) as channel:
        for method, request in {**REPORT, **READS, **ADMIN}.items():
            surface, words = WORDS[method]
            before = there.fleet.value("identity_rejected_total", surface=surface) or 0
            caplog.clear()
            with caplog.at_level(logging.ERROR):
                said = await call(channel, method, request)
            is_refused = said.code == "PERMISSION_DENIED"
            assert is_refused is (method not in MAY.get(caller, ())), (method, said)
            counted = there.fleet.value("identity_rejected_total", surface=surface) or 0
            assert counted - before == is_refused
            assert (words in caplog.text) is is_refused


async def test_the_arguments_are_looked_at_after_the_caller(there: Guarded) -> None:
    async with there.channel("readonly") as channel:
        said = await call(channel, "RemoveShard", pb.RemoveShardRequest())
        assert said.code == "PERMISSION_DENIED"
        # But a report without an id names no shard it could be compared with.
        assert (await call(channel, "ReportShard", pb.ShardReport())).code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("caller", ["unknown", "shard", "admin"])
async def test_a_huge_id_is_denied_with_a_short_status_and_a_short_log(
    there: Guarded, caller: str, caplog: pytest.LogCaptureFixture
) -> None:
    huge = "s" * 8_000_000
    async with there.channel(caller) as channel:
        with caplog.at_level(logging.DEBUG, logger="bigfleet"):
            said = await call(channel, "ReportShard", pb.ShardReport(shard_id=huge))
    assert said.code == "PERMISSION_DENIED"
    assert len(said.text) < 500
    assert sum(len(str(vars(record))) for record in caplog.records) < 100_000


async def test_a_certificate_without_a_name_is_denied_before_the_report_is_looked_at(
    there: Guarded,
) -> None:
    async with there.channel("unknown") as channel:
        said = await call(channel, "ReportShard", pb.ShardReport())
    assert said.code == "PERMISSION_DENIED"
    assert "names no caller" in said.text


async def test_ids_that_break_the_rules_are_refused_and_not_stored(there: Guarded) -> None:
    async with there.channel("admin") as channel:
        for bad in ("c" * 8_000_000, "c\0", "c\r\nforged", "../../etc/passwd"):
            said = await call(channel, "BindCluster", pb.BindClusterRequest(cluster_id=bad))
            assert said.code == "INVALID_ARGUMENT"
            assert len(said.text) < 700
    assert not there.fleet.coordinator.lead().state.clusters
