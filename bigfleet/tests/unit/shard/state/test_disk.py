"""The real disk: whole files or untouched ones, for their owner alone."""

import errno
import os
import stat
from pathlib import Path

import pytest

from bigfleet.shard.state.disk import DiskError, DiskFullError, LocalDisk


def test_a_file_is_read_as_it_was_last_replaced_or_appended(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path / "data" / "shard")
    assert disk.read("epoch") is None
    disk.replace("epoch", b"1\n")
    disk.replace("epoch", b"2\n")
    disk.append("journal", b"a")
    disk.append("journal", b"b")
    assert (disk.read("epoch"), disk.read("journal")) == (b"2\n", b"ab")
    assert sorted(path.name for path in (tmp_path / "data" / "shard").iterdir()) == [
        "epoch",
        "journal",
    ]


def test_files_are_for_their_owner_alone_also_when_a_person_opened_them(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    (tmp_path / "journal").write_bytes(b"")
    (tmp_path / "journal").chmod(0o666)
    disk.append("journal", b"x")
    disk.replace("epoch", b"1")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("journal", "epoch")}
    assert modes == {0o600}


@pytest.mark.parametrize("name", ["", ".", "../epoch", "a/b", ".hidden"])
def test_only_plain_names_are_files_of_the_directory(tmp_path: Path, name: str) -> None:
    with pytest.raises(DiskError, match="plain name"):
        LocalDisk(tmp_path).read(name)


def fail_writing(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    real = os.write

    def write(file: int, content: memoryview) -> int:
        if len(content) > 2:
            return real(file, content[:2])
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "write", write)


def test_a_full_disk_leaves_files_as_they_were_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = LocalDisk(tmp_path)
    disk.append("journal", b"old")
    disk.replace("epoch", b"old")
    fail_writing(monkeypatch, errno.ENOSPC)
    for call in (disk.append, disk.replace):
        for name in ("journal", "epoch"):
            with pytest.raises(DiskFullError, match="free some space"):
                call(name, b"new content")
    monkeypatch.undo()
    assert (disk.read("journal"), disk.read("epoch")) == (b"old", b"old")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch", "journal"]


def test_other_failures_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = LocalDisk(tmp_path)
    fail_writing(monkeypatch, errno.EIO)
    with pytest.raises(DiskError, match="journal: Input/output error") as raised:
        disk.append("journal", b"x" * 9)
    assert not isinstance(raised.value, DiskFullError)
    assert isinstance(raised.value, OSError)


def test_what_cannot_be_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DiskError, match="must be writable"):
        LocalDisk(tmp_path / "file")
