"""Periodic exports: a snapshot every five minutes into a directory, the last 24 kept.

Only the leader exports. A file appears whole or not at all. Names sort by time; only files with
such a name are ever removed. When the next one is due follows from the newest file, so a
coordinator that keeps restarting does not push the good ones out.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from bigfleet.coordinator.store.errors import SnapshotMissingError, StoreError
from bigfleet.coordinator.store.interface import Leadership, Snapshot, StateStore
from bigfleet.observe.process import Clock, Offload
from bigfleet_base.files import make_folder

EVERY_SECONDS: Final = 300.0
KEEP: Final = 24
_NAME: Final = re.compile(r"snapshot-(\d{8}T\d{6}Z)-\d+\.json")
_TIME: Final = "%Y%m%dT%H%M%SZ"
_NANOS: Final = 1_000_000_000

_log = logging.getLogger(__name__)


class ExportCounts(Protocol):
    """What exports count; see `bigfleet.observe.coordinator`."""

    def snapshot_exported(self, outcome: str) -> None:
        """success or error."""


class Exports:
    """The directory. Blocking: call it through an Offload."""

    def __init__(self, directory: Path, keep: int = KEEP) -> None:
        self._directory = directory
        self._keep = keep

    def write(self, snapshot: Snapshot, term: int, now: int) -> Path:
        """Write one and let the oldest go. The time is in Unix nanoseconds."""
        make_folder(self._directory)
        stamp = datetime.fromtimestamp(now // _NANOS, UTC).strftime(_TIME)
        path = self._directory / f"snapshot-{stamp}-{term}.json"
        write_whole(path, snapshot.data)
        # One from the future is older than its name says: a clock was put back since.
        by_age = sorted(self.files(), key=lambda one: (one.name <= path.name, one.name))
        for old in by_age[: -self._keep]:
            old.unlink(missing_ok=True)
        return path

    def files(self) -> list[Path]:
        """Exports that are there, oldest first."""
        if not self._directory.is_dir():
            return []
        return sorted(path for path in self._directory.iterdir() if _NAME.fullmatch(path.name))

    def due_in(self, now: int, every: float) -> float:
        """Seconds until the next one should be written."""
        files = self.files()
        named = _NAME.fullmatch(files[-1].name) if files else None
        if named is None:
            return 0.0
        last = datetime.strptime(named[1], _TIME).replace(tzinfo=UTC).timestamp()
        # A file from the future must not keep exports away forever.
        return min(max(0.0, last + every - now / _NANOS), every)


def write_whole(path: Path, content: bytes) -> None:
    """The file has this content and it is flushed, or it is as it was."""
    successor = path.with_name(f".{path.name}.partial")
    try:
        descriptor = os.open(successor, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        successor.replace(path)
    except OSError:
        with suppress(OSError):
            successor.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Exporter:
    """Exports for as long as one leadership lasts."""

    def __init__(
        self,
        store: StateStore,
        exports: Exports,
        clock: Clock,
        offload: Offload,
        counts: ExportCounts,
        every: float = EVERY_SECONDS,
    ) -> None:
        self._store = store
        self._exports = exports
        self._clock = clock
        self._offload = offload
        self._counts = counts
        self._every = every

    async def run(self, leadership: Leadership) -> None:
        """Export whenever one is due, until the leadership is lost."""
        rest = await self._offload(lambda: self._exports.due_in(self._clock.now(), self._every))
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await leadership.lost.wait()
            if leadership.lost.is_set():
                return
            await self.export(leadership)
            rest = self._every

    async def export(self, leadership: Leadership) -> None:
        """Export once. What goes wrong is told and counted; the next one may succeed."""
        try:
            snapshot = await self._store.snapshot(leadership)
            now = self._clock.now()
            path = await self._offload(lambda: self._exports.write(snapshot, leadership.term, now))
        except SnapshotMissingError:
            return
        except (StoreError, OSError) as error:
            _log.warning(
                "snapshot export failed; the next try is in %g s",
                self._every,
                extra={"error": str(error)},
            )
            self._counts.snapshot_exported("error")
            return
        _log.info(
            "snapshot exported",
            extra={"path": str(path), "bytes": len(snapshot.data), "term": leadership.term},
        )
        self._counts.snapshot_exported("success")
