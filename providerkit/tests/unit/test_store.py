"""Both stores keep the same promises; the durable one refuses what it cannot trust."""

import asyncio
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bigfleet_providerkit.errors import StateError, StoreUnavailable
from bigfleet_providerkit.store.interface import Changes, Store
from bigfleet_providerkit.store.memory import MemoryStore
from bigfleet_providerkit.store.schema import SCHEMA_VERSION
from bigfleet_providerkit.store.sqlite import FULL, MOVE, SqliteStore

Open = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "memory":
        kept = MemoryStore()
        return lambda: kept
    return lambda: SqliteStore(tmp_path / "state.db")


async def put(store: Store, changes: Changes) -> None:
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ended(error: StoreUnavailable | None) -> None:
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    store.submit(changes, ended)
    await done


async def test_what_was_submitted_is_there_after_a_kill(opened: Open) -> None:
    store = opened()
    store.open("label")
    await put(store, {("machines", b"a\0b"): b"\0one", ("late", b"x"): b"1"})
    await put(store, {("machines", b"c"): b"two", ("late", b"x"): None})
    store.abandon()
    again = opened()
    tables = again.open("label")
    assert tables["machines"] == {b"a\0b": b"\0one", b"c": b"two"}
    assert tables["late"] == {}
    await again.close()


async def test_changes_are_told_in_order_and_later_ones_win(opened: Open) -> None:
    store = opened()
    store.open("label")
    answered: list[int] = []
    last = asyncio.get_running_loop().create_future()
    for number in range(1500):
        value = str(number).encode()
        changes: Changes = {("machines", b"same"): value, ("machines", value): value}
        store.submit(changes, lambda error, n=number: answered.append(n))  # type: ignore[misc]
    store.submit({}, lambda error: last.set_result(None))
    await last
    assert answered == list(range(1500))
    await store.close()
    again = opened()
    tables = again.open("label")["machines"]
    assert tables[b"same"] == b"1499"
    assert len(tables) == 1501
    await again.close()


async def test_another_label_is_refused(opened: Open) -> None:
    store = opened()
    store.open("one")
    await put(store, {("meta", b"counters"): b"1"})
    await store.close()
    with pytest.raises(StateError, match="belongs to provider 'one', not 'two'"):
        opened().open("two")


async def filled(path: Path) -> None:
    store = SqliteStore(path)
    store.open("label")
    for start in range(0, 4000, 500):
        await put(store, {("machines", b"%06d" % n): b"v" * 200 for n in range(start, start + 500)})
    await store.close()


async def test_a_second_process_is_told_who_holds_the_state(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    store.open("label")
    with pytest.raises(StateError, match=r"s\.db is in use by process \d+ \(host "):
        SqliteStore(tmp_path / "s.db").open("label")
    await store.close()
    again = SqliteStore(tmp_path / "s.db")
    again.open("label")
    await again.close()


def _head(data: bytearray) -> None:
    data[:512] = b"\xa5" * 512


def _middle(data: bytearray) -> None:
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = b"\xa5" * 4096


def _half(data: bytearray) -> None:
    del data[len(data) // 2 :]


def _value(data: bytearray) -> None:
    at = data.rindex(b"vvvvvvvv")
    data[at] = ord("w")


@pytest.mark.parametrize("damage", [_head, _middle, _half, _value])
async def test_a_damaged_file_is_refused_and_left_as_it_is(
    tmp_path: Path, damage: Callable[[bytearray], None]
) -> None:
    path = tmp_path / "state.db"
    await filled(path)
    data = bytearray(path.read_bytes())
    damage(data)
    path.write_bytes(data)
    with pytest.raises(StateError, match=r"state\.db"):
        SqliteStore(path).open("label")
    assert path.read_bytes() == bytes(data)


async def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    text, other = tmp_path / "text.db", tmp_path / "other.db"
    text.write_text("this is not a database, but long enough to look like one" * 50)
    with sqlite3.connect(other) as connection:
        connection.execute("create table t (x)")
    connection.close()
    for path in (text, other):
        with pytest.raises(StateError, match=path.name):
            SqliteStore(path).open("label")


async def test_a_newer_schema_is_refused_with_both_numbers(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("pragma user_version = 99")
    connection.close()
    with pytest.raises(StateError, match=f"version 99, this release knows {SCHEMA_VERSION}"):
        SqliteStore(path).open("label")


async def test_an_older_schema_is_migrated_after_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("drop table hosts")
        connection.execute("pragma user_version = 1")
    connection.close()
    store = SqliteStore(path)
    assert len(store.open("label")["machines"]) == 4000
    await put(store, {("hosts", b"h"): b"1"})
    await store.close()
    assert (tmp_path / "state.db.v1.bak").exists()


async def test_a_full_disk_is_unavailable_and_comes_back(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    store.open("label")
    await put(store, {("machines", b"before"): b"1"})
    assert store._connection is not None
    store._connection.execute("pragma max_page_count = 20")
    with pytest.raises(StoreUnavailable, match="full"):
        await put(store, {("machines", b"big"): b"x" * 1_000_000})
    assert "full" in store.trouble
    store._connection.execute("pragma max_page_count = 100000")
    await put(store, {("machines", b"after"): b"1"})
    assert store.trouble == ""
    await store.close()
    again = SqliteStore(tmp_path / "state.db")
    assert set(again.open("label")["machines"]) == {b"before", b"after"}
    await again.close()


def test_an_empty_file_is_refused_with_a_remedy_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.touch()
    with pytest.raises(StateError, match=r"state\.db is empty: .* restore a copy, or remove it"):
        SqliteStore(path).open("label")
    assert path.stat().st_size == 0
    path.unlink()
    store = SqliteStore(path)
    store.open("label")
    store.abandon()


async def test_files_are_the_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        await filled(tmp_path / "state.db")
        (tmp_path / "state.db").chmod(0o666)
        store = SqliteStore(tmp_path / "state.db")
        store.open("label")
        await put(store, {("machines", b"a"): b"1"})
        modes = modes_in(tmp_path)
    finally:
        os.umask(before)
    await store.close()
    names = {"state.db", "state.db-wal", "state.db-shm", "state.db.lock"}
    assert modes == dict.fromkeys(names, 0o600)


async def test_the_log_stays_bounded_under_single_calls_that_never_pause(tmp_path: Path) -> None:
    most = await longest_log(tmp_path / "state.db", calls=2_000, move=256 << 10, full=1 << 20)
    assert 256 << 10 <= most < 2 << 20


@pytest.mark.deep
@pytest.mark.timeout(1200)
async def test_the_log_stays_under_128_mib_for_ten_minutes_of_single_calls(tmp_path: Path) -> None:
    most = await longest_log(tmp_path / "state.db", seconds=600)
    assert most < 128 << 20


def modes_in(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()}


async def longest_log(
    path: Path, calls: int = 0, seconds: float = 0.0, move: int = MOVE, full: int = FULL
) -> int:
    """Bytes of the log at its longest, while four callers change one row after the other."""
    store, log, most = (
        SqliteStore(path, move=move, full=full),
        path.with_name(f"{path.name}-wal"),
        0,
    )
    store.open("label")
    ends = time.monotonic() + seconds

    async def call(caller: int) -> None:
        nonlocal most
        number = 0
        while number < calls // 4 or time.monotonic() < ends:
            key = b"%d-%d" % (caller, number % 100)
            await put(store, {("machines", key): b"v" * 300, ("fences", key): b"m"})
            most = max(most, log.stat().st_size)
            number += 1

    await asyncio.gather(*(call(caller) for caller in range(4)))
    await store.close()
    again = SqliteStore(path)
    assert len(again.open("label")["machines"]) == 400
    await again.close()
    return most


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="the folder must exist"):
        SqliteStore(tmp_path / "nowhere" / "state.db").open("label")


async def test_the_log_is_moved_into_the_file_while_changes_go_on(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    store.open("label")
    for start in range(0, 24_000, 4_000):
        rows: Changes = {("machines", b"%d" % n): b"x" for n in range(start, start + 4_000)}
        await put(store, rows)
    copy = tmp_path / "copy.db"
    await store.close()
    shutil.copy(tmp_path / "state.db", copy)
    again = SqliteStore(copy)
    assert len(again.open("label")["machines"]) == 24_000
    await again.close()
