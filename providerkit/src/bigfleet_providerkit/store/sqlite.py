"""The durable store: SQLite in WAL mode with full synchronisation and one writer thread.

Everything that waits when the writer is free goes into one transaction: no timer, no batch size.
Each row carries a checksum, so damage that SQLite's own check cannot see is found at start. A file
that is damaged, foreign, empty or newer is refused and left as it is.

The write-ahead log is bounded in bytes. A second thread moves it into the file once it has `MOVE`
bytes, beside the writer. SQLite begins the log again only when all of it has been moved, and with
a writer that never pauses some of it never is: so the writer itself moves what the second thread
left over, which is little, and begins the log again. It waits for the second thread only at `FULL`.
"""

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bigfleet_providerkit.errors import StateError, StoreUnavailable
from bigfleet_providerkit.store.files import make_file, owner_only
from bigfleet_providerkit.store.interface import Changes, Done, Observer, Quiet, Tables
from bigfleet_providerkit.store.lock import StateLock
from bigfleet_providerkit.store.schema import prepare_schema, read_tables
from bigfleet_providerkit.store.writer import prepare_writing, write_changes

MOVE = 16 * 1024 * 1024
FULL = 64 * 1024 * 1024
_Wake = Callable[[Callable[[], None]], object]
_Job = tuple[Changes, Done, _Wake]


class SqliteStore:
    """Tables in one file."""

    def __init__(
        self,
        path: str | Path,
        observer: Observer | None = None,
        *,
        move: int = MOVE,
        full: int = FULL,
    ) -> None:
        """`move` and `full` are sizes of the log in bytes."""
        self.path = str(path)
        self.trouble = ""
        self._file = Path(path)
        self._observer: Observer = observer or Quiet()
        self._lock = StateLock(self._file)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._log_file = self._file.with_name(f"{self._file.name}-wal")
        self._move, self._full = move, full
        self._compact = threading.Event()
        self._moved = threading.Event()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._connection: sqlite3.Connection | None = None
        self._abandoned = False

    def open(self, label: str) -> Tables:
        """Lock, check and load; starts the writer."""
        began = time.perf_counter()
        self._lock.acquire()
        try:
            make_file(self._file)
            self._connection = _connect(self._file)
            prepare_schema(self._connection, self._file, label)
            owner_only(self._file)
            tables = read_tables(self._connection, self._file)
            prepare_writing(self._connection)
        except (sqlite3.Error, OSError, StateError) as error:
            self._observer.store_failed("load")
            self._release()
            if isinstance(error, StateError):
                raise
            raise StateError(
                f"state file {self._file} cannot be used: {error}; restore a copy, or move it away "
                "to start without its marks and bindings"
            ) from error
        self._observer.stored("load", time.perf_counter() - began)
        for target in (self._write_jobs, self._move_log):
            thread = threading.Thread(target=target, name=f"store-{target.__name__}", daemon=True)
            thread.start()
            self._threads.append(thread)
        return tables

    def prepare(self, changes: Changes) -> None:
        """Make changes durable before there is an event loop to answer to."""
        ready = threading.Event()
        failure: list[StoreUnavailable | None] = []

        def done(error: StoreUnavailable | None) -> None:
            failure.append(error)
            ready.set()

        self._jobs.put((changes, done, lambda tell: tell()))
        ready.wait()
        if failure[0] is not None:
            raise StateError(f"state file {self._file} cannot be written: {failure[0]}")

    def submit(self, changes: Changes, done: Done) -> None:
        """Queue changes for the next transaction."""
        self._jobs.put((changes, done, asyncio.get_running_loop().call_soon_threadsafe))

    async def close(self) -> None:
        """Write what waits, move the log into the file, let go."""
        await asyncio.to_thread(self._shut)

    def abandon(self) -> None:
        """Let go without writing what waits."""
        self._abandoned = True
        self._shut()

    def _shut(self) -> None:
        self._stopping.set()
        self._compact.set()
        self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._release()

    def _release(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._lock.release()

    # The writer thread.

    def _write_jobs(self) -> None:
        while True:
            batch, last = self._next_batch()
            if batch and not self._abandoned:
                self._commit(batch)
            if last:
                return

    def _next_batch(self) -> tuple[list[_Job], bool]:
        job = self._jobs.get()
        batch: list[_Job] = []
        while job is not None:
            batch.append(job)
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True

    def _commit(self, batch: list[_Job]) -> None:
        began = time.perf_counter()
        error: StoreUnavailable | None = None
        merged: Changes = {}
        for changes, _, _ in batch:
            merged.update(changes)
        try:
            assert self._connection is not None
            write_changes(self._connection, merged)
            self.trouble = ""
            self._observer.stored("append", time.perf_counter() - began)
        except sqlite3.Error as problem:
            self.trouble = str(problem)
            self._observer.store_failed("append")
            error = StoreUnavailable(f"state file {self._file} cannot be written: {problem}")
        _answer(batch, error)
        self._bound_log()

    def _bound_log(self) -> None:
        """Have the log moved, and begin it again after that."""
        try:
            size = self._log_file.stat().st_size
        except OSError:
            return
        if size >= self._full or (self._moved.is_set() and size >= self._move):
            self._moved.clear()
            self._begin_log_again()
        elif size >= self._move:
            self._compact.set()

    def _begin_log_again(self) -> None:
        assert self._connection is not None
        began = time.perf_counter()
        try:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._observer.stored("compact", time.perf_counter() - began)
        except sqlite3.Error:
            # The log grows on until it succeeds: nothing that was answered depends on it.
            self._observer.store_failed("compact")

    # The thread that moves the log into the file.

    def _move_log(self) -> None:
        connection = _connect(self._file)
        try:
            while True:
                self._compact.wait()
                self._compact.clear()
                if self._stopping.is_set():
                    return
                began = time.perf_counter()
                try:
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                    self._observer.stored("compact", time.perf_counter() - began)
                    self._moved.set()
                except sqlite3.Error:
                    self._observer.store_failed("compact")
        finally:
            connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=10.0, cached_statements=64
    )


def _answer(batch: list[_Job], error: StoreUnavailable | None) -> None:
    """Tell everybody in order, with one wake-up of the loop for the whole transaction."""

    def tell() -> None:
        for _, done, _ in batch:
            done(error)

    try:
        batch[0][2](tell)
    except RuntimeError:
        # The loop is closed: no task waits for the answer any more.
        return
