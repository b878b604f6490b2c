"""Snapshots: a file from a running leader, and back into a store at rest."""

import errno
import json
import os
from pathlib import Path

import pytest

from bigfleet.coordinator.store.interface import StoredRow
from bigfleet.coordinator.store.snapshots.documents import Document, encode
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from ctlfleet import NOW, CannedCoordinator, ctl, serving
from ctlworld import World

ROWS = (
    StoredRow("shards", "s-1", b'{"address":"s-1:7780","registered_at":1}'),
    StoredRow("clusters", "shop", b'{"shard":"s-1","bound_at":2}'),
)
SNAPSHOT = encode(Document(ROWS, term=7, revision=42, taken_at=NOW))


def frames(data: bytes = SNAPSHOT.data) -> list[pb.SnapshotSaveChunk]:
    half = len(data) // 2
    return [
        pb.SnapshotSaveChunk(meta_json=SNAPSHOT.meta_json),
        pb.SnapshotSaveChunk(data=data[:half]),
        pb.SnapshotSaveChunk(data=data[half:]),
    ]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "saved.json"
    path.write_bytes(SNAPSHOT.data)
    return path


def test_a_snapshot_is_saved_whole(fleet: World, tmp_path: Path) -> None:
    fleet.coordinator.snapshot = frames()
    path = tmp_path / "fleet.json"
    result = ctl(*fleet.at, "snapshot", "save", str(path), columns=400)
    assert result.exit_code == 0, result.output
    assert path.read_bytes() == SNAPSHOT.data
    assert "term 7, revision 42" in result.stdout
    assert path.stat().st_mode & 0o777 == 0o600
    document = json.loads(ctl(*fleet.at, "snapshot", "save", str(path), "-o", "json").stdout)
    assert document["bytes"] == len(SNAPSHOT.data)
    assert document["meta"]["revision"] == 42


def test_a_follower_sends_the_request_for_a_snapshot_on(fleet: World, tmp_path: Path) -> None:
    fleet.coordinator.snapshot = frames()
    with serving(CannedCoordinator().follows(fleet.at[1])) as address:
        path = tmp_path / "fleet.json"
        assert ctl("--coordinator", address, "snapshot", "save", str(path)).exit_code == 0
    assert path.read_bytes() == SNAPSHOT.data


def test_a_snapshot_that_is_cut_short_leaves_no_file(fleet: World, tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    fleet.coordinator.snapshot = frames(SNAPSHOT.data[:-5])
    result = ctl(*fleet.at, "snapshot", "save", str(path))
    assert result.exit_code == 1
    assert "cut short" in result.stderr
    fleet.coordinator.snapshot = []
    result = ctl(*fleet.at, "snapshot", "save", str(path))
    assert result.exit_code == 1
    assert "sent no snapshot" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_snapshot_that_does_not_reach_the_disk_leaves_nothing_behind(
    fleet: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    fleet.coordinator.snapshot = frames()
    file = tmp_path / "fleet.json"
    result = ctl(*fleet.at, "snapshot", "save", str(file))
    assert result.exit_code == 1
    assert f"{file}: cannot be written: No space left on device" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_snapshot_goes_to_a_directory_that_exists(fleet: World, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere" / "fleet.json"):
        result = ctl(*fleet.at, "snapshot", "save", str(path))
        assert result.exit_code == 2
        assert "name a file in a directory that exists" in result.stderr
    assert fleet.coordinator.methods() == []


def test_a_snapshot_is_restored_once_and_again_only_by_force(saved: Path, tmp_path: Path) -> None:
    words = ["snapshot", "restore", str(saved), "--store", "sqlite", "--data-dir"]
    where = str(tmp_path / "data")
    first = ctl(*words, where, columns=400)
    assert first.exit_code == 0, first.output
    assert "Restored 2 rows of 2027-01-15T08:00:00.000Z into sqlite" in first.stdout
    assert "above 7" in first.stdout
    second = ctl(*words, where)
    assert second.exit_code == 1
    assert second.stderr.count("\n") == 1
    assert "--force" in second.stderr
    forced = ctl(*words, where, "--force", "-o", "json")
    document = json.loads(forced.stdout)
    assert (document["rows"], document["term"], document["revision"]) == (2, 7, 42)


@pytest.mark.parametrize(
    "spoil", [b"", b"{}", SNAPSHOT.data[:-9], SNAPSHOT.data.replace(b"s-1", b"s-2")]
)
def test_a_file_that_is_no_snapshot_touches_no_store(
    saved: Path, tmp_path: Path, spoil: bytes
) -> None:
    saved.write_bytes(spoil)
    result = ctl("snapshot", "restore", str(saved), "--data-dir", str(tmp_path / "data"))
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert str(saved) in result.stderr
    assert not (tmp_path / "data").exists()


def test_bad_input_to_a_restore_is_one_line(saved: Path, tmp_path: Path) -> None:
    missing = ctl("snapshot", "restore", str(tmp_path / "none.json"))
    assert missing.exit_code == 2
    assert "cannot be read: No such file" in missing.stderr
    part = ctl("snapshot", "restore", str(saved), "--store-tls-cert", "x")
    assert part.exit_code == 2
    assert "TLS needs all three files: add --store-tls-key and --store-tls-ca" in part.stderr
    user = ctl("snapshot", "restore", str(saved), "--store-username", "fleet")
    assert user.exit_code == 2
    assert "--store-username and --store-password-file belong together" in user.stderr
    engine = ctl("snapshot", "restore", str(saved), "--store", "paper")
    assert engine.exit_code == 2
    assert "'paper' is neither sqlite nor etcd" in engine.stderr
