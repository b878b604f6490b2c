"""Periodic exports, on a clock moved by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from bigfleet.coordinator.store.call_metrics import NoStoreCounts
from bigfleet.coordinator.store.errors import SnapshotMissingError, StoreUnavailableError
from bigfleet.coordinator.store.interface import Leadership, Snapshot
from bigfleet.coordinator.store.snapshots.exporter import Exporter, Exports, write_whole
from bigfleet.coordinator.store.sqlite import SqliteStore
from clocks import SECOND, HandClock

T = TypeVar("T")
SNAPSHOT = Snapshot(b"{}", b'{"rows":1}\n')


async def at_once(function: Callable[[], T]) -> T:
    return function()


class Counts:
    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def snapshot_exported(self, outcome: str) -> None:
        self.outcomes.append(outcome)


class Snapshots(SqliteStore):
    """A store of which only its snapshots are asked for."""

    def __init__(self, folder: Path, *answers: Snapshot | Exception) -> None:
        super().__init__(folder, HandClock(), at_once, NoStoreCounts())
        self.answers = list(answers)

    async def snapshot(self, leadership: Leadership) -> Snapshot:
        answer = self.answers.pop(0)
        if not self.answers:
            leadership.lost.set()
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_the_last_ones_are_kept_and_nothing_else_is_touched(tmp_path: Path) -> None:
    exports = Exports(tmp_path, keep=24)
    (tmp_path / "notes.json").write_text("mine")
    paths = [exports.write(SNAPSHOT, 3, (1_700_000_000 + 300 * at) * SECOND) for at in range(30)]
    assert exports.files() == paths[-24:]
    assert paths[0].name == "snapshot-20231114T221320Z-3.json"
    assert (tmp_path / "notes.json").read_text() == "mine"
    assert paths[-1].read_bytes() == SNAPSHOT.data
    assert paths[-1].stat().st_mode & 0o777 == 0o600


def test_a_clock_that_was_put_back_does_not_make_the_newest_one_the_first_to_go(
    tmp_path: Path,
) -> None:
    exports = Exports(tmp_path, keep=3)
    for at in range(3):
        exports.write(SNAPSHOT, 3, (1_800_000_000 + 300 * at) * SECOND)
    now = 1_700_000_000
    paths = [exports.write(SNAPSHOT, 4, (now + 300 * at) * SECOND) for at in range(3)]
    assert exports.files() == paths


def test_the_next_one_is_due_a_while_after_the_newest(tmp_path: Path) -> None:
    exports = Exports(tmp_path / "new")
    start = 1_700_000_000 * SECOND
    assert exports.due_in(start, 300.0) == 0.0
    exports.write(SNAPSHOT, 1, start)
    assert exports.due_in(start + 100 * SECOND, 300.0) == 200.0
    assert exports.due_in(start + 900 * SECOND, 300.0) == 0.0
    assert exports.due_in(start - 9_000 * SECOND, 300.0) == 300.0


def test_a_file_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    write_whole(path, b"old")

    def full(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_whole(path, b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["x.json"]
    assert path.read_bytes() == b"old"


async def test_failures_are_counted_and_told_and_the_next_export_is_tried(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    counts = Counts()
    store = Snapshots(
        tmp_path,
        SNAPSHOT,
        SnapshotMissingError("nothing yet"),
        StoreUnavailableError("away"),
        SNAPSHOT,
    )
    exporter = Exporter(store, Exports(tmp_path), HandClock(), at_once, counts, every=0.0)
    async with asyncio.timeout(10):
        await exporter.run(Leadership(9))
    assert counts.outcomes == ["success", "error", "success"]
    (told,) = [one for one in caplog.records if one.levelname == "WARNING"]
    assert told.message.startswith("snapshot export failed")
    assert getattr(told, "error", "") == "away"
