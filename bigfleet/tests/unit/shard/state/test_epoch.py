"""The epoch: higher with every start, and never guessed from a file that cannot be read."""

import logging

import pytest

from bigfleet.shard.state.epoch import next_epoch
from bigfleet.shard.state.errors import EpochError
from reconciling import MemoryDisk

NOW = 1_700_000_000_999_999_999
LARGEST = 2**63 - 1


def test_every_start_has_the_next_number_and_it_is_written_first() -> None:
    disk = MemoryDisk({"epoch": b"41"})
    assert [next_epoch(disk, NOW), next_epoch(disk, NOW)] == [42, 43]
    assert disk.files["epoch"] == b"43\n"


def test_a_lost_volume_starts_from_the_time_of_day_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = MemoryDisk()
    with caplog.at_level(logging.WARNING):
        assert next_epoch(disk, NOW) == 1_700_000_000
    assert "no epoch file" in caplog.text
    assert next_epoch(disk, NOW) == 1_700_000_001


@pytest.mark.parametrize(
    "content", [b"", b"abc", b"-1", b"1.5", b"1 2", b"\xff", b"9" * 40, str(LARGEST).encode()]
)
def test_an_unreadable_file_stops_the_start_with_the_remedy(content: bytes) -> None:
    disk = MemoryDisk({"epoch": content})
    with pytest.raises(EpochError, match="remove it to start from the time of day"):
        next_epoch(disk, NOW)
    assert disk.files["epoch"] == content


def test_an_override_is_used_as_it_is_and_counted_on_from() -> None:
    disk = MemoryDisk({"epoch": b"garbage"})
    assert next_epoch(disk, NOW, override=7) == 7
    assert next_epoch(disk, NOW) == 8
    for wrong in (0, -1, LARGEST + 1):
        with pytest.raises(EpochError, match=str(wrong)):
            next_epoch(disk, NOW, override=wrong)


def test_a_write_that_fails_stops_the_start() -> None:
    disk = MemoryDisk({"epoch": b"41"}, full=True)
    with pytest.raises(OSError, match="No space"):
        next_epoch(disk, NOW)
    assert disk.files["epoch"] == b"41"
