"""Snapshots between engines: saved from any, restored into any, with a term that only grows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bigfleet.coordinator.store.errors import SnapshotError, StoreLockedError, StoreNotEmptyError
from bigfleet.coordinator.store.factory import Engine
from bigfleet.coordinator.store.interface import RestoreScope, RowKey, Snapshot, StoredRow
from bigfleet.coordinator.store.snapshots.documents import restore
from etcd_members import Cluster
from storing import domain, engine_at, leading, opened, rows_in

pytestmark = pytest.mark.usefixtures("long_lease")

ENGINES = ("sqlite", "etcd")
ROWS = [
    StoredRow("shards", "a", b'{"address":"a:1"}'),
    StoredRow("meta", "revision", b"12"),
    *(domain(f"r{number}", "a") for number in range(400)),
]
Make = Callable[[str, str], Engine]


@pytest.fixture
def make(one_member: Cluster, tmp_path: Path, prefix: str) -> Make:
    """Engines by kind and name; the same two give the same rows."""

    def engine(kind: str, name: str) -> Engine:
        address = "sqlite" if kind == "sqlite" else one_member.address(f"{prefix}-{name}")
        return engine_at(address, tmp_path / name)

    return engine


async def saved(store: Engine, terms: int = 1) -> tuple[Snapshot, int]:
    """A snapshot of a store with rows, after some leaderships; and the term."""
    async with opened(store):
        for _ in range(terms - 1):
            await store.resign(await leading(store))
        leadership = await leading(store)
        await store.commit(ROWS, [], 0, leadership)
        return await store.snapshot(leadership), leadership.term


def as_rows(rows: list[StoredRow]) -> dict[RowKey, bytes]:
    return {RowKey(row.table, row.key): row.value for row in rows}


@pytest.mark.parametrize("into", ENGINES)
@pytest.mark.parametrize("of", ENGINES)
async def test_every_engine_restores_what_any_engine_saved(make: Make, of: str, into: str) -> None:
    snapshot, term = await saved(make(of, "one"), terms=3)
    async with opened(make(into, "two")) as store:
        restored = await restore(store, snapshot.data)
        assert (restored.term, len(restored.rows)) == (term, len(ROWS))
        assert await rows_in(store) == as_rows(ROWS)
        leadership = await leading(store)
        assert leadership.term > term
        again = await store.snapshot(leadership)
        assert json.loads(again.data)["tables"] == json.loads(snapshot.data)["tables"]
        revision = (await store.load()).revision
        assert await store.commit([domain("new", "b")], [], revision, leadership) > revision


@pytest.mark.parametrize("into", ENGINES)
async def test_a_term_far_ahead_is_never_undercut(make: Make, into: str) -> None:
    snapshot, _ = await saved(make("sqlite", "one"))
    ahead = snapshot.data.replace(b'"term":1', b'"term":5000000')
    async with opened(make(into, "two")) as store:
        await restore(store, ahead)
        assert (await leading(store)).term > 5_000_000


@pytest.mark.parametrize("into", ENGINES)
async def test_a_store_ahead_of_the_snapshot_stays_ahead(make: Make, into: str) -> None:
    snapshot, _ = await saved(make("sqlite", "one"))
    _, term = await saved(make(into, "two"), terms=9)
    async with opened(make(into, "two")) as store:
        await restore(store, snapshot.data, RestoreScope.EVERYTHING)
        assert (await leading(store)).term > term


@pytest.mark.parametrize("into", ENGINES)
async def test_a_store_with_rows_is_not_written_over_unless_told(make: Make, into: str) -> None:
    snapshot, _ = await saved(make("sqlite", "one"))
    async with opened(make(into, "two")) as store:
        leadership = await leading(store)
        await store.commit([domain("mine", "z")], [], 0, leadership)
        await store.resign(leadership)
        with pytest.raises(StoreNotEmptyError, match=r"1 rows.*--force"):
            await restore(store, snapshot.data)
        assert await rows_in(store) == as_rows([domain("mine", "z")])
        await restore(store, snapshot.data, RestoreScope.EVERYTHING)
        assert await rows_in(store) == as_rows(ROWS)


@pytest.mark.parametrize("into", ENGINES)
async def test_a_bad_document_leaves_the_store_as_it_was(make: Make, into: str) -> None:
    snapshot, _ = await saved(make("sqlite", "one"))
    bad = (
        snapshot.data[:-20],
        b"",
        snapshot.data.replace(b'"version":1', b'"version":99'),
        snapshot.data.replace(b"a:1", b"a:2"),
    )
    async with opened(make(into, "two")) as store:
        for data in bad:
            with pytest.raises(SnapshotError):
                await restore(store, data, RestoreScope.EVERYTHING)
        assert (await store.load()).revision == 0


async def test_nothing_is_restored_while_a_coordinator_leads(make: Make) -> None:
    snapshot, _ = await saved(make("sqlite", "one"))
    async with opened(make("etcd", "two")) as running, opened(make("etcd", "two")) as tool:
        leadership = await leading(running, "one:7790")
        with pytest.raises(StoreLockedError, match="coordinator at one:7790 leads"):
            await restore(tool, snapshot.data, RestoreScope.EVERYTHING)
        assert leadership.holds()
        assert await rows_in(running) == {}


async def test_nothing_is_restored_into_a_file_in_use(make: Make) -> None:
    async with opened(make("sqlite", "one")):
        with pytest.raises(StoreLockedError, match="stop it first"):
            await make("sqlite", "one").open()
