"""What every engine promises, held against both: SQLite on a real disk, etcd as a real process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from bigfleet.coordinator.store.errors import (
    DeposedError,
    SnapshotMissingError,
    StoreConflictError,
    StoreFullError,
    StoreSettingsError,
    StoreUnavailableError,
)
from bigfleet.coordinator.store.factory import Engine
from bigfleet.coordinator.store.interface import Leader, RowKey, StoredRow
from storing import domain, engine_at, leading, opened, rows_in, until

pytestmark = pytest.mark.usefixtures("long_lease")

Another = Callable[[], Engine]


@pytest.fixture(params=["sqlite", "etcd"])
def another(request: pytest.FixtureRequest, tmp_path: Path, prefix: str) -> Another:
    """Makes engines over the same rows."""
    if request.param == "sqlite":
        return lambda: engine_at("sqlite", tmp_path)
    cluster = request.getfixturevalue("one_member")
    return lambda: engine_at(cluster.address(prefix), tmp_path)


@pytest.fixture
async def store(another: Another) -> AsyncIterator[Engine]:
    async with opened(another()) as opened_store:
        yield opened_store


async def test_an_empty_store_is_at_revision_zero(store: Engine) -> None:
    loaded = await store.load()
    assert (list(loaded.rows), loaded.revision) == ([], 0)


async def test_what_was_committed_is_loaded(store: Engine) -> None:
    leadership = await leading(store)
    revision = await store.commit([domain("r1", "a"), domain("r2", "b")], [], 0, leadership)
    assert await rows_in(store) == {
        RowKey("domains", "rack/r1"): b'{"shard":"a"}',
        RowKey("domains", "rack/r2"): b'{"shard":"b"}',
    }
    assert (await store.load()).revision == revision > 0


async def test_each_commit_has_a_higher_revision(store: Engine) -> None:
    leadership = await leading(store)
    first = await store.commit([domain("r1", "a")], [], 0, leadership)
    second = await store.commit([], [], first, leadership)
    third = await store.commit([], [RowKey("domains", "rack/r1")], second, leadership)
    assert 0 < first < second < third
    assert await rows_in(store) == {}


async def test_deleting_what_is_absent_is_fine(store: Engine) -> None:
    leadership = await leading(store)
    await store.commit([], [RowKey("moves", "none")], 0, leadership)
    assert await rows_in(store) == {}


async def test_a_row_that_is_put_and_deleted_is_put(store: Engine) -> None:
    leadership = await leading(store)
    await store.commit(
        [domain("r1", "a"), domain("r1", "b")], [RowKey("domains", "rack/r1")], 0, leadership
    )
    assert await rows_in(store) == {RowKey("domains", "rack/r1"): b'{"shard":"b"}'}


async def test_a_commit_at_another_revision_changes_nothing(store: Engine) -> None:
    leadership = await leading(store)
    revision = await store.commit([domain("r1", "a")], [], 0, leadership)
    for wrong in (0, revision - 1, revision + 1):
        with pytest.raises(StoreConflictError, match="load again"):
            await store.commit([domain("r1", "b")], [], wrong, leadership)
    assert await rows_in(store) == {RowKey("domains", "rack/r1"): b'{"shard":"a"}'}
    assert not leadership.lost.is_set()


async def test_a_commit_of_a_former_leadership_changes_nothing(store: Engine) -> None:
    former = await leading(store)
    await store.resign(former)
    assert former.lost.is_set()
    assert not former.holds()
    with pytest.raises(DeposedError, match="campaign again"):
        await store.commit([domain("r1", "a")], [], 0, former)
    current = await leading(store)
    with pytest.raises(DeposedError, match="campaign again"):
        await store.commit([domain("r1", "a")], [], 0, former)
    assert await rows_in(store) == {}
    await store.commit([domain("r1", "a")], [], 0, current)


async def test_every_leadership_has_a_higher_term(store: Engine, another: Another) -> None:
    terms = []
    for _ in range(3):
        leadership = await leading(store)
        terms.append(leadership.term)
        await store.resign(leadership)
    await store.close()
    async with opened(another()) as again:
        terms.append((await leading(again)).term)
    assert terms == sorted(set(terms))
    assert terms[0] > 0


async def test_rows_survive_closing(store: Engine, another: Another) -> None:
    leadership = await leading(store)
    revision = await store.commit([domain("r1", "a")], [], 0, leadership)
    await store.close()
    assert leadership.lost.is_set()
    async with opened(another()) as again:
        assert await rows_in(again) == {RowKey("domains", "rack/r1"): b'{"shard":"a"}'}
        await again.commit([domain("r2", "a")], [], revision, await leading(again))


@pytest.mark.parametrize("count", [121, 1_000])
async def test_a_large_commit_is_whole(store: Engine, count: int) -> None:
    leadership = await leading(store)
    many = [domain(f"r{number}", "a") for number in range(count)]
    revision = await store.commit(many, [], 0, leadership)
    assert len(await rows_in(store)) == count
    gone = [RowKey(row.table, row.key) for row in many[1:]]
    await store.commit([domain("last", "b")], gone, revision, leadership)
    assert sorted(key.key for key in await rows_in(store)) == ["rack/last", "rack/r0"]


async def test_a_large_commit_at_another_revision_changes_nothing(store: Engine) -> None:
    leadership = await leading(store)
    revision = await store.commit([domain("r1", "a")], [], 0, leadership)
    with pytest.raises(StoreConflictError):
        await store.commit([domain(f"x{n}", "b") for n in range(300)], [], 0, leadership)
    assert len(await rows_in(store)) == 1
    await store.commit([], [], revision, leadership)


async def test_rows_of_many_bytes_are_kept(store: Engine) -> None:
    leadership = await leading(store)
    value = b'"' + b"x" * 500_000 + b'"'
    many = [StoredRow("moves", f"m{number}", value) for number in range(4)]
    await store.commit(many, [], 0, leadership)
    assert await rows_in(store) == {RowKey("moves", f"m{n}"): value for n in range(4)}


async def test_a_row_that_another_engine_could_not_keep_is_refused(store: Engine) -> None:
    leadership = await leading(store)
    with pytest.raises(StoreFullError, match="moves/m"):
        await store.commit([StoredRow("moves", "m", b"x" * 600_000)], [], 0, leadership)
    with pytest.raises(StoreSettingsError, match="percent-encode"):
        await store.commit([StoredRow("moves", "a b", b"{}")], [], 0, leadership)
    with pytest.raises(StoreSettingsError, match="no table 'ducks'"):
        await store.commit([StoredRow("ducks", "a", b"{}")], [], 0, leadership)
    assert (await store.load()).revision == 0


async def test_who_leads_is_known_and_watched(store: Engine) -> None:
    seen: list[Leader | None] = []

    async def look() -> None:
        watching = store.watch()
        async with aclosing(watching) as changes:  # type: ignore[type-var]
            async for leader in changes:
                seen.append(leader)

    looking = asyncio.ensure_future(look())
    await until(lambda: seen == [None])
    leadership = await leading(store, "one:7790")
    assert store.leader() == Leader("one:7790", leadership.term)
    await until(lambda: len(seen) == 2)
    await store.resign(leadership)
    await until(lambda: len(seen) == 3)
    assert seen == [None, Leader("one:7790", leadership.term), None]
    assert store.leader() is None
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)


async def test_an_empty_store_has_no_snapshot(store: Engine) -> None:
    with pytest.raises(SnapshotMissingError):
        await store.snapshot(await leading(store))


async def test_a_store_that_is_not_open_says_so(another: Another) -> None:
    with pytest.raises(StoreUnavailableError, match="not open"):
        await another().load()
    await another().close()
