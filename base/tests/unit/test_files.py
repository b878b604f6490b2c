"""State is its owner's alone, whatever the umask of the process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bigfleet_base.files import make_folder, open_to_append


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.usefixtures("_umask")
def test_folders_and_files_are_the_owners_alone(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    os.close(open_to_append(tmp_path / "a" / "b" / "file"))
    assert (mode(tmp_path / "a"), mode(tmp_path / "a" / "b")) == (0o700, 0o700)
    assert mode(tmp_path / "a" / "b" / "file") == 0o600


def test_a_file_that_was_open_to_all_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "file").chmod(0o666)
    os.close(open_to_append(tmp_path / "file"))
    assert mode(tmp_path / "file") == 0o600


def test_a_folder_that_is_there_keeps_its_rights(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o750)
    make_folder(tmp_path / "shared")
    assert mode(tmp_path / "shared") == 0o750


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match="file"):
            make_folder(folder)
