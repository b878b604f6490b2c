"""The tables of the file, the checksums of their rows, and how an older file is brought up to date.

SQLite checks the form of its pages, not what is in them: a flipped bit in a row would be believed.
So each row carries a checksum of all it says. A new file is made under another name and renamed
into place; an empty one has therefore lost what it held, and is refused with a remedy instead of
being filled as if the fleet were new.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from pathlib import Path
from typing import Final

from bigfleet.coordinator.store.errors import CorruptStoreError

VERSION: Final = 2
_OWNER_ONLY: Final = 0o600
_OURS: Final = 0x62666C74
"""Marks the file as a coordinator's."""


def row_sum(table: str, key: str, value: bytes) -> int:
    """Finds damage in a row that leaves the structure of the file intact."""
    return zlib.crc32(value, zlib.crc32(f"{table}\0{key}\0".encode()))


def number_sum(name: str, value: int) -> int:
    """The same for one of the numbers."""
    return zlib.crc32(f"{name}\0{value}".encode())


def make_file(path: Path) -> None:
    """Make the file where there is none; CorruptStoreError for an empty one."""
    if path.exists():
        if path.stat().st_size == 0:
            raise CorruptStoreError(
                f"{path} is empty: it has lost what it held. Move it away and restore the last "
                "snapshot with `bigfleetctl snapshot restore`, or start with an empty fleet"
            )
        return
    new = path.with_name(f"{path.name}.new")
    for left in (new, new.with_name(f"{new.name}-journal")):
        left.unlink(missing_ok=True)
    os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OWNER_ONLY))
    new.chmod(_OWNER_ONLY)
    db = sqlite3.connect(new, isolation_level=None)
    try:
        db.executescript(
            f"""
            BEGIN IMMEDIATE;
            CREATE TABLE rows (
                tab TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, sum INTEGER NOT NULL,
                PRIMARY KEY (tab, key)
            ) WITHOUT ROWID;
            CREATE TABLE numbers (
                name TEXT PRIMARY KEY, value INTEGER NOT NULL, sum INTEGER NOT NULL
            ) WITHOUT ROWID;
            INSERT INTO numbers VALUES
                ('term', 0, {number_sum("term", 0)}), ('revision', 0, {number_sum("revision", 0)});
            PRAGMA application_id = {_OURS};
            PRAGMA user_version = {VERSION};
            COMMIT;
            """
        )
    finally:
        db.close()
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def prepare(db: sqlite3.Connection, path: Path) -> None:
    """Check that the file is ours and of a known version; bring an older one up to date."""
    path.chmod(_OWNER_ONLY)
    (ours,) = db.execute("PRAGMA application_id").fetchone()
    if ours != _OURS:
        raise CorruptStoreError(
            f"{path} is the database of something else; choose another --data-dir"
        )
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version not in (1, VERSION):
        raise CorruptStoreError(
            f"{path} has version {version}, this release knows {VERSION}: start the release that "
            "wrote it, or restore a snapshot into another --data-dir"
        )
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    if version == 1:
        _add_sums(db)


def _add_sums(db: sqlite3.Connection) -> None:
    """Version 1 had no checksums."""
    db.create_function("row_sum", 3, row_sum, deterministic=True)
    db.create_function("number_sum", 2, number_sum, deterministic=True)
    db.executescript(
        f"""
        BEGIN IMMEDIATE;
        ALTER TABLE rows ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
        UPDATE rows SET sum = row_sum(tab, key, value);
        ALTER TABLE numbers ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
        UPDATE numbers SET sum = number_sum(name, value);
        PRAGMA user_version = {VERSION};
        COMMIT;
        """
    )
