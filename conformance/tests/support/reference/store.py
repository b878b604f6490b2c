"""The reference provider's store: SQLite, one process at a time, damage found at the start."""

import contextlib
import fcntl
import json
import secrets
import sqlite3
import zlib
from pathlib import Path
from typing import TextIO

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from reference.inventory import Slot

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE machines (id BLOB PRIMARY KEY, record BLOB, revision INTEGER, facts TEXT, crc INTEGER)
    WITHOUT ROWID;
CREATE TABLE fences (shard BLOB, machine BLOB, epoch INTEGER, sequence INTEGER,
    PRIMARY KEY (shard, machine)) WITHOUT ROWID;
"""
Fences = dict[tuple[str, str], tuple[int, int]]


class StoreError(Exception):
    """The state cannot be used; the message names the file."""


def crc_of(record: bytes, revision: int, facts: str) -> int:
    """A checksum over everything a row says."""
    return zlib.crc32(f"{revision}|{facts}|".encode() + record)


class Store:
    """What survives a crash. Without a path nothing does."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.store_id = secrets.token_hex(4)
        self.database: sqlite3.Connection | None = None
        self._lock: TextIO | None = None
        self.fresh = True
        if path is not None:
            self._open(path)

    def lock(self, path: Path) -> None:
        """One process at a time."""
        self._lock = Path(f"{path}.lock").open("w")  # noqa: SIM115 - held for the process's life
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            raise StoreError(f"state file {path} is in use by another process") from error

    def _open(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.lock(path)
        self.fresh = not path.exists()
        try:
            self.connect(path)
        except sqlite3.DatabaseError as error:
            self.close()
            raise StoreError(f"state file {path} is damaged: {error}") from error

    def connect(self, path: Path) -> None:
        """Open or make the database, and see that it is whole."""
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.database = database
        if not self.fresh:
            found = database.execute("PRAGMA integrity_check").fetchone()[0]
            if found != "ok":
                raise sqlite3.DatabaseError(found)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=OFF")
        if self.fresh:
            database.executescript(SCHEMA)
            self.put_meta("store_id", self.store_id)
        else:
            self.store_id = self.meta("store_id")

    def meta(self, key: str, default: str = "") -> str:
        """One remembered word."""
        if self.database is None:
            return default
        row = self.database.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
        return default if row is None else str(row[0])

    def put_meta(self, key: str, value: str) -> None:
        """Remember one word."""
        if self.database is not None:
            self.database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def put(self, slot: Slot) -> None:
        """Keep a slot as it is now."""
        if self.database is None:
            return
        record = slot.record.SerializeToString()
        facts = json.dumps([slot.operations, slot.running, slot.deadline, slot.failed_at])
        row = (slot.record.id.encode(), record, slot.revision, facts)
        self.database.execute(
            "INSERT OR REPLACE INTO machines VALUES (?, ?, ?, ?, ?)",
            (*row, crc_of(record, slot.revision, facts)),
        )

    def drop(self, machine: str) -> None:
        """Forget a slot."""
        if self.database is not None:
            self.database.execute("DELETE FROM machines WHERE id=?", (machine.encode(),))

    def put_fence(self, shard: str, machine: str, mark: tuple[int, int]) -> None:
        """Keep the mark of a pair."""
        if self.database is not None:
            self.database.execute(
                "INSERT OR REPLACE INTO fences VALUES (?, ?, ?, ?)",
                (shard.encode(), machine.encode(), *mark),
            )

    def drop_fence(self, shard: str, machine: str) -> None:
        """Forget the mark of a pair."""
        if self.database is not None:
            self.database.execute(
                "DELETE FROM fences WHERE shard=? AND machine=?", (shard.encode(), machine.encode())
            )

    def slots(self) -> list[Slot]:
        """Every slot, in the order of the revisions."""
        if self.database is None:
            return []
        found = []
        for id, record, revision, facts, crc in self.database.execute(
            "SELECT id, record, revision, facts, crc FROM machines ORDER BY revision"
        ):
            if crc_of(record, revision, facts) != crc:
                raise StoreError(f"state file {self.path} is damaged: row {id!r}")
            operations, running, deadline, failed_at = json.loads(facts)
            machine = pb.Machine.FromString(record)
            found.append(Slot(machine, revision, operations, running, deadline, failed_at))
        return found

    def fences(self) -> Fences:
        """Every mark."""
        if self.database is None:
            return {}
        return {
            (shard.decode(), machine.decode()): (epoch, sequence)
            for shard, machine, epoch, sequence in self.database.execute(
                "SELECT shard, machine, epoch, sequence FROM fences"
            )
        }

    def begin(self) -> None:
        """Start a transaction over many rows."""
        if self.database is not None:
            self.database.execute("BEGIN")

    def commit(self) -> None:
        """End it."""
        if self.database is not None:
            self.database.execute("COMMIT")

    def close(self) -> None:
        """Close the file and give the lock back."""
        if self.database is not None:
            with contextlib.suppress(sqlite3.Error):
                self.database.close()
            self.database = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None
