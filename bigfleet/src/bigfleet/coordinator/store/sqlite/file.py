"""The file: rows and a few numbers, changed by transactions that are on disk when they return.

WAL with full sync: a transaction that was acknowledged survives a kill and a loss of power, one
that was not leaves nothing. A lock beside the file keeps a second process out for as long as the
first lives, and says which one it is. Everything blocks and may be called from any thread; one at a
time is let in. How the tables look, and the checksum of every row, is in `schema`.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bigfleet.coordinator.store.changes import Changes
from bigfleet.coordinator.store.errors import (
    CorruptStoreError,
    DeposedError,
    StoreConflictError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreNotEmptyError,
    StoreUnavailableError,
)
from bigfleet.coordinator.store.interface import LoadedRows, RestoreScope, StoredRow
from bigfleet.coordinator.store.sqlite.schema import (
    make_file,
    number_sum,
    prepare,
    row_sum,
)
from bigfleet_base.files import make_folder

NAME: Final = "coordinator.db"
_CORRUPT: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class SqliteFile:
    """An open file, locked against everybody else."""

    def __init__(self, directory: Path) -> None:
        """Open or make the file in a directory. StoreLockedError: another process has it."""
        self._path = directory / NAME
        self._one = threading.Lock()
        try:
            make_folder(directory)
            self._lock = _locked(directory / f"{NAME}.lock")
        except OSError as error:
            raise StoreUnavailableError(
                f"{directory} cannot be used for the store: {error}; check --data-dir, its owner "
                "and its disk"
            ) from error
        try:
            self._db = self._connect()
        except BaseException:
            os.close(self._lock)
            raise

    def _connect(self) -> sqlite3.Connection:
        with self._translated():
            make_file(self._path)
            db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            with self._translated():
                prepare(db, self._path)
        except BaseException:
            db.close()
            raise
        return db

    def load(self) -> LoadedRows:
        """All rows and their revision."""
        with self._one, self._translated(), self._transaction("DEFERRED"):
            found = self._db.execute("SELECT tab, key, value, sum FROM rows").fetchall()
            for table, key, value, total in found:
                if row_sum(table, key, value) != total:
                    raise self._damaged(f"row {key!r} of {table}")
            return LoadedRows([StoredRow(*row[:3]) for row in found], self._number("revision"))

    def new_term(self) -> int:
        """Count a leadership; from now on only it may write."""
        with self._one, self._translated(), self._transaction("IMMEDIATE"):
            return self._set("term", self._number("term") + 1)

    def commit(self, changes: Changes, expected_revision: int, term: int) -> int:
        """Apply changes in one transaction; the new revision."""
        with self._one, self._translated(), self._transaction("IMMEDIATE"):
            if self._number("term") != term:
                raise DeposedError(f"term {term} is over; campaign again")
            revision = self._number("revision")
            if revision != expected_revision:
                raise StoreConflictError(
                    f"rows are at revision {revision}, not {expected_revision}; load again"
                )
            gone = [(key.table, key.key) for key, value in changes.items() if value is None]
            self._db.executemany("DELETE FROM rows WHERE tab = ? AND key = ?", gone)
            self._put(
                [(key.table, key.key, value) for key, value in changes.items() if value is not None]
            )
            return self._set("revision", revision + 1)

    def replace(
        self, rows: Sequence[StoredRow], term: int, revision: int, over: RestoreScope
    ) -> None:
        """Exchange all rows; later terms are above this one, later revisions above both."""
        with self._one, self._translated(), self._transaction("IMMEDIATE"):
            (present,) = self._db.execute("SELECT count(*) FROM rows").fetchone()
            if present and over is RestoreScope.NOTHING:
                raise StoreNotEmptyError(
                    f"{self._path} holds {present} rows; --force replaces them. Nothing was changed"
                )
            self._db.execute("DELETE FROM rows")
            self._put([(row.table, row.key, row.value) for row in rows])
            self._set("term", max(self._number("term"), term))
            self._set("revision", max(self._number("revision"), revision) + 1)

    def close(self) -> None:
        """Let go of the file and the lock."""
        with self._one:
            self._db.close()
            os.close(self._lock)

    def _put(self, rows: Sequence[tuple[str, str, bytes]]) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?)",
            [(*row, row_sum(*row)) for row in rows],
        )

    def _number(self, name: str) -> int:
        found = self._db.execute(
            "SELECT value, sum FROM numbers WHERE name = ?", (name,)
        ).fetchone()
        if found is None:
            raise CorruptStoreError(f"{self._path} has lost its {name}; restore the last snapshot")
        if number_sum(name, found[0]) != found[1]:
            raise self._damaged(f"its {name}")
        return int(found[0])

    def _set(self, name: str, value: int) -> int:
        self._db.execute(
            "UPDATE numbers SET value = ?, sum = ? WHERE name = ?",
            (value, number_sum(name, value), name),
        )
        return value

    def _damaged(self, what: str) -> CorruptStoreError:
        return CorruptStoreError(
            f"{self._path} is damaged: {what} does not match its checksum. Move it away and "
            "restore the last snapshot with `bigfleetctl snapshot restore`"
        )

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
        self._db.execute(f"BEGIN {kind}")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            # SQLite has rolled back by itself after some errors, a full disk among them.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._told_as(error) from error

    def _told_as(self, error: sqlite3.Error) -> StoreError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return StoreFullError(
                f"no room left for {self._path}; nothing was written. Free space on its disk"
            )
        if code in _CORRUPT:
            return CorruptStoreError(
                f"{self._path} cannot be read: {error}. Move it away and restore the last snapshot "
                "with `bigfleetctl snapshot restore`"
            )
        if code == sqlite3.SQLITE_BUSY:
            return StoreLockedError(f"another program has {self._path} open; end it")
        return StoreUnavailableError(f"{self._path}: {error}; check its disk")


def _locked(path: Path) -> int:
    """The lock, held by this process until it ends or closes it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
    except BlockingIOError:
        holder = os.pread(lock, 20, 0).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise StoreLockedError(
            f"{path.parent / NAME} is in use by process {holder}: stop it first, or give this one "
            "a --data-dir of its own"
        ) from None
    except BaseException:
        os.close(lock)
        raise
    return lock
