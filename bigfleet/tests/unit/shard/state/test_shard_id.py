"""A data directory belongs to one shard for good."""

import pytest

from bigfleet.shard.errors import DirectoryError
from bigfleet.shard.state.shard_id import take_directory
from reconciling import MemoryDisk


def test_the_first_shard_to_start_in_a_directory_has_it() -> None:
    disk = MemoryDisk()
    take_directory(disk, "s-2")
    take_directory(disk, "s-2")
    assert disk.files == {"shard-id": b"s-2\n"}


def test_another_shard_is_told_whose_it_is_and_what_to_do() -> None:
    disk = MemoryDisk()
    take_directory(disk, "s-2")
    with pytest.raises(
        DirectoryError, match=r"of shard 's-2', and this is shard 's-3'.*--data-dir"
    ):
        take_directory(disk, "s-3")
    assert disk.files == {"shard-id": b"s-2\n"}


def test_a_directory_from_before_is_taken_over() -> None:
    disk = MemoryDisk({"epoch": b"41\n"})
    take_directory(disk, "s-2")
    assert disk.files == {"epoch": b"41\n", "shard-id": b"s-2\n"}


@pytest.mark.parametrize("content", [b"", b"\xff", b"x" * 5000])
def test_a_file_of_another_form_is_not_guessed_at(content: bytes) -> None:
    disk = MemoryDisk({"shard-id": content})
    with pytest.raises(DirectoryError) as refused:
        take_directory(disk, "s-2")
    assert len(str(refused.value)) < 300
    assert disk.files == {"shard-id": content}


def test_a_write_that_fails_stops_the_start() -> None:
    with pytest.raises(OSError, match="No space"):
        take_directory(MemoryDisk(full=True), "s-2")
