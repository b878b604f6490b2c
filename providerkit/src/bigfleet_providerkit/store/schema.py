"""Tables, versions and checksums of the state file, and how an older one is brought up to date.

All tables have the same form, (key, value, sum): what a value holds is `rows`. Keys and values are
bytes, so that NUL survives. Rows lie in the order of their key without a second copy of it.
"""

import shutil
import sqlite3
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from bigfleet_providerkit.errors import StateError
from bigfleet_providerkit.store.interface import TABLES

SCHEMA_VERSION = 2
APPLICATION_ID = 0x42466C74  # "BFlt", in the header of the file
LABEL_KEY = b"label"


def checksum(key: bytes, value: bytes) -> int:
    """Finds damage that leaves the structure of the file intact."""
    return zlib.crc32(value, zlib.crc32(key))


def prepare_schema(connection: sqlite3.Connection, path: Path, label: str) -> None:
    """Check that the file is ours, whole and of a known version; migrate older tables."""
    _refuse_foreign(connection, path)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise StateError(
            f"state file {path} has schema version {version}, this release knows "
            f"{SCHEMA_VERSION}; use the newer release"
        )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    _check_label(connection, path, label)
    if version < SCHEMA_VERSION:
        _migrate(connection, path, version)
    _keep_label(connection, label)


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    found = connection.execute("PRAGMA application_id").fetchone()[0]
    if found != APPLICATION_ID:
        raise StateError(f"{path} is not a state file of a provider; choose another --state")
    problems = [row[0] for row in connection.execute("PRAGMA quick_check(3)")]
    if problems != ["ok"]:
        raise StateError(
            f"state file {path} is damaged ({problems[0]}); restore a copy, or move it away to "
            "start without its marks and bindings"
        )


def create_schema(connection: sqlite3.Connection) -> None:
    """The tables of a new file."""
    connection.execute("BEGIN IMMEDIATE")
    for table in TABLES:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {table} (key BLOB PRIMARY KEY, value BLOB NOT NULL,"
            " sum INTEGER NOT NULL) WITHOUT ROWID"
        )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def _check_label(connection: sqlite3.Connection, path: Path, label: str) -> None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (LABEL_KEY,)).fetchone()
    if row is not None and row[0] != label.encode():
        raise StateError(
            f"state file {path} belongs to provider {row[0].decode()!r}, not {label!r}; "
            "use its own --provider or another --state"
        )


def _keep_label(connection: sqlite3.Connection, label: str) -> None:
    """Stored under its own key, so that it can be compared before anything else is read."""
    value = label.encode()
    connection.execute(
        "INSERT OR IGNORE INTO meta VALUES (?, ?, ?)",
        (LABEL_KEY, value, checksum(LABEL_KEY, value)),
    )


def _to_2(connection: sqlite3.Connection) -> None:
    """Version 1 had no table for the hosts of a substrate in memory."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS hosts (key BLOB PRIMARY KEY, value BLOB NOT NULL,"
        " sum INTEGER NOT NULL) WITHOUT ROWID"
    )


MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], None]] = {1: _to_2}


def _migrate(connection: sqlite3.Connection, path: Path, version: int) -> None:
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy2(path, path.with_name(f"{path.name}.v{version}.bak"))
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in range(version, SCHEMA_VERSION):
            MIGRATIONS[step](connection)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except sqlite3.Error:
        connection.execute("ROLLBACK")
        raise


def read_tables(connection: sqlite3.Connection, path: Path) -> dict[str, dict[bytes, bytes]]:
    """All rows, each compared with its checksum."""
    tables: dict[str, dict[bytes, bytes]] = {}
    for table in TABLES:
        rows = tables[table] = {}
        for key, value, total in connection.execute(f"SELECT key, value, sum FROM {table}"):
            if checksum(key, value) != total:
                raise StateError(
                    f"state file {path} is damaged (a row of {table} does not match its checksum); "
                    "restore a copy, or move it away to start without its marks and bindings"
                )
            rows[key] = value
    return tables
