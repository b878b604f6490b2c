"""The file of the embedded engine: who may have it, and what happens when it is not what it was."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from bigfleet.coordinator.store.changes import changes_of
from bigfleet.coordinator.store.errors import (
    CorruptStoreError,
    StoreFullError,
    StoreLockedError,
    StoreUnavailableError,
)
from bigfleet.coordinator.store.interface import LoadedRows, StoredRow
from bigfleet.coordinator.store.sqlite.file import NAME, SqliteFile


def test_a_second_process_is_kept_out_and_told_who_has_it(tmp_path: Path) -> None:
    first = SqliteFile(tmp_path)
    with pytest.raises(StoreLockedError, match=rf"process {os.getpid()}: stop it first"):
        SqliteFile(tmp_path)
    first.close()
    SqliteFile(tmp_path).close()


def test_every_commit_is_flushed(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path)
    (mode,) = file._db.execute("PRAGMA journal_mode").fetchone()
    (sync,) = file._db.execute("PRAGMA synchronous").fetchone()
    file.close()
    assert (mode, sync) == ("wal", 2)


def test_the_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    SqliteFile(tmp_path).close()
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600


def test_a_full_disk_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path)
    term = file.new_term()
    revision = file.commit(changes_of([StoredRow("shards", "a", b"{}")], ()), 0, term)
    (pages,) = file._db.execute("PRAGMA page_count").fetchone()
    file._db.execute(f"PRAGMA max_page_count = {pages}")
    many = [StoredRow("moves", f"m{number}", b"x" * 10_000) for number in range(100)]
    with pytest.raises(StoreFullError, match="Free space"):
        file.commit(changes_of(many, ()), revision, term)
    loaded = file.load()
    assert (len(loaded.rows), loaded.revision) == (1, revision)
    file.close()


def test_a_file_that_is_no_database_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"this is something else entirely, not a database" * 100)
    with pytest.raises(CorruptStoreError, match="snapshot restore"):
        SqliteFile(tmp_path)


def test_the_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / NAME)
    other.execute("CREATE TABLE ducks (name TEXT)")
    other.close()
    with pytest.raises(CorruptStoreError, match="choose another --data-dir"):
        SqliteFile(tmp_path)


def test_a_file_of_another_release_is_refused_with_the_remedy(tmp_path: Path) -> None:
    SqliteFile(tmp_path).close()
    other = sqlite3.connect(tmp_path / NAME)
    other.execute("PRAGMA user_version = 9")
    other.close()
    with pytest.raises(CorruptStoreError, match="version 9, this release knows 2"):
        SqliteFile(tmp_path)


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailableError, match="check --data-dir"):
        SqliteFile(tmp_path / "file" / "data")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE rows SET value = x'7b7e'",
        "UPDATE rows SET key = 'b'",
        "UPDATE numbers SET value = 7 WHERE name = 'revision'",
        "UPDATE numbers SET value = 7 WHERE name = 'term'",
    ],
)
def test_a_row_that_does_not_match_its_checksum_is_refused(tmp_path: Path, damage: str) -> None:
    file = SqliteFile(tmp_path)
    file.commit(changes_of([StoredRow("shards", "a", b"{}")], ()), 0, file.new_term())
    file.close()
    other = sqlite3.connect(tmp_path / NAME)
    other.execute(damage)
    other.commit()
    other.close()
    file = SqliteFile(tmp_path)
    with pytest.raises(CorruptStoreError, match=r"does not match its checksum.*snapshot restore"):
        read_all(file)
    file.close()


def read_all(file: SqliteFile) -> None:
    file.load()
    file.new_term()


def test_an_empty_file_is_refused_with_the_remedy_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    with pytest.raises(CorruptStoreError, match=r"is empty: it has lost.*snapshot restore"):
        SqliteFile(tmp_path)
    assert (tmp_path / NAME).stat().st_size == 0


def test_a_file_from_before_checksums_is_brought_up_to_date(tmp_path: Path) -> None:
    older = sqlite3.connect(tmp_path / NAME, isolation_level=None)
    older.executescript(VERSION_1)
    older.close()
    for _ in range(2):
        file = SqliteFile(tmp_path)
        assert file.load() == LoadedRows([StoredRow("shards", "ü", b"{}")], 4)
        file.close()
    file = SqliteFile(tmp_path)
    assert file.new_term() == 10
    file.close()


VERSION_1 = f"""
CREATE TABLE rows (
    tab TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (tab, key)
) WITHOUT ROWID;
CREATE TABLE numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO numbers VALUES ('term', 9), ('revision', 4);
INSERT INTO rows VALUES ('shards', 'ü', x'7b7d');
PRAGMA application_id = {0x62666C74};
PRAGMA user_version = 1;
"""
