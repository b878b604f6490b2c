"""A data directory that an older release wrote opens, and nothing in it is lost.

The files were written by the classes of revision 05a636e.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bigfleet.model import PenaltyBucket, Stamp
from bigfleet.provider import ProviderSite
from bigfleet.shard.errors import DataFileError
from bigfleet.shard.state.data_dir import DataDirectory
from bigfleet.shard.state.disk import LocalDisk
from bigfleet.shard.state.done_instructions import Done
from bigfleet.shard.state.errors import ReconcileError
from bigfleet.shard.state.journal import JournalEntry
from bigfleet.shard.state.ownership import Transfer, TransferRole
from clocks import HandClock
from coordinating import inline

OLD = Path(__file__).parents[3] / "golden" / "data-directory"
STAMP = Stamp(
    "c-1", "shape", "gang-1", "print", 7, PenaltyBucket.ZERO, PenaltyBucket.PINNED, 3, "s"
)


def directory_in(folder: Path) -> DataDirectory:
    return DataDirectory("s-1", (), LocalDisk(folder), inline, lambda _on: None)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    shutil.copytree(OLD, folder)
    return folder


def check(opened: DataDirectory, epoch: int) -> None:
    """Everything that was written is there."""
    assert opened.epoch == epoch
    domains = opened.ownership.domains
    assert domains.own == {("zone", "a"), ("pool", "x")}
    assert domains.foreign == {("zone", "b")}
    assert (domains.is_default, domains.revision, domains.keys) == (False, 4, ("zone", "pool"))
    assert opened.ownership.has_given("m-1")
    assert opened.ownership.transfers == (
        Transfer("move-1", TransferRole.DONOR, ("m-1", "m-2")),
        Transfer("move-2", TransferRole.RECIPIENT, ("m-9",)),
    )
    assert opened.entries == {
        "m-3": JournalEntry(stamp=STAMP),
        "m-4": JournalEntry(
            leaving=True, for_stamp=STAMP, deadline_ns=99, instruction_id="i-1", final=True
        ),
    }
    assert opened.stamps == {
        "m-6": replace(STAMP, sequence=11), "m-7": replace(STAMP, sequence=12)
    }  # fmt: skip
    done = Done("move-1/release", "move-1", TransferRole.DONOR, ("m-1", "m-2"))
    assert opened.remembered.get("move-1/release") == done
    assert opened.remembered.promised() == {"m-8": 5}
    assert set(opened.excluded) == {"m-10", "m-11"}
    assert list(opened.forgotten) == ["c-gone"]
    assert (opened.pause.on, opened.pause.reason) == (True, "looking at über-reclaims")
    assert opened.assignments.clusters == ("c-1", "c-2")
    assert opened.assignments.quotas() == {("p", "r"): 5}
    assert opened.assignments.sites() == [ProviderSite("p", "h:1", "r")]


async def test_a_directory_of_an_older_release_opens_and_keeps_everything(copied: Path) -> None:
    opened = directory_in(copied)
    await opened.read(HandClock(), None)
    check(opened, 1_700_000_002)


async def test_what_this_release_writes_reads_back_as_it_was(copied: Path) -> None:
    first = directory_in(copied)
    await first.read(HandClock(), None)
    await first.excluded.set("m-12", True)
    await first.excluded.set("m-12", False)
    await first.forgotten.add("c-2")
    await first.forgotten.mark_present("c-2")
    await first.ownership.give("move-3", ["m-20"])
    await first.ownership.settle("move-3")
    await first.pause.pause("looking at über-reclaims")
    again = directory_in(copied)
    await again.read(HandClock(), None)
    assert again.ownership.has_given("m-20")
    check(again, 1_700_000_003)


def _load(name: str) -> Callable[[DataDirectory], object]:
    return lambda opened: getattr(opened, name).load()


@pytest.mark.parametrize(
    ("file", "load", "remedy"),
    [
        ("excluded.json", _load("excluded"), "remove it to exclude none"),
        ("forgotten.json", _load("forgotten"), "remove it to forget none"),
        ("ownership", _load("ownership"), "restore it from a backup"),
        ("instructions", _load("remembered"), "restore it from a backup"),
    ],
)
@pytest.mark.parametrize("content", [b"", b"{", b'{"a": [', b"\xff\x00", b"7"])
def test_a_file_that_cannot_be_read_is_named_with_a_remedy_and_stays(
    copied: Path,
    file: str,
    load: Callable[[DataDirectory], object],
    remedy: str,
    content: bytes,
) -> None:
    (copied / file).write_bytes(content)
    with pytest.raises((DataFileError, ReconcileError), match=f"{file}.*{remedy}"):
        load(directory_in(copied))
    assert (copied / file).read_bytes() == content


async def test_a_pause_that_cannot_be_read_pauses_and_says_how_to_end_that(copied: Path) -> None:
    (copied / "paused.json").write_bytes(b"\xff")
    opened = directory_in(copied)
    await opened.pause.load()
    assert opened.pause.on
    assert "resume to write it again" in opened.pause.reason
