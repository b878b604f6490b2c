"""The journal: durable when it says so, flushed in groups, readable after any accident."""

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest

from bigfleet.model import PenaltyBucket, Stamp
from bigfleet.shard.state.checksummed_lines import sealed
from bigfleet.shard.state.journal import Journal, JournalEntry
from reconciling import MemoryDisk, at_once

T = TypeVar("T")
STAMP = Stamp("c-1", "shape", "g", "print", 7, PenaltyBucket.ZERO, PenaltyBucket.PINNED, 3, "s")
LEAVING = JournalEntry(
    leaving=True, for_stamp=STAMP, deadline_ns=99, instruction_id="i-1", final=True
)


@asynccontextmanager
async def running(journal: Journal) -> AsyncIterator[Journal]:
    task = asyncio.create_task(journal.run())
    try:
        yield journal
    finally:
        task.cancel()


async def test_what_was_remembered_is_there_after_a_restart() -> None:
    disk = MemoryDisk()
    async with running(Journal(disk, at_once)) as journal:
        await journal.remember("a", JournalEntry(STAMP))
        await journal.remember("b", JournalEntry(STAMP))
        await journal.remember("b", LEAVING)
        await journal.remember("gone", JournalEntry())
        assert journal.knows("gone")
        await journal.forget("gone")
        assert not journal.knows("gone")
    assert Journal(disk, at_once).load() == {"a": JournalEntry(STAMP), "b": LEAVING}


def test_a_line_of_an_older_release_is_of_a_drain_that_can_be_called_off() -> None:
    disk = MemoryDisk()
    body = b'{"machine":"a","entry":{"leaving":true,"deadline_ns":99,"instruction_id":"i-1"}}'
    disk.append("journal", sealed(body))
    entry = JournalEntry(leaving=True, deadline_ns=99, instruction_id="i-1")
    assert Journal(disk, at_once).load() == {"a": entry}
    assert not entry.final


async def test_forgetting_what_is_unknown_costs_nothing() -> None:
    disk = MemoryDisk()
    await Journal(disk, at_once).forget("unknown")
    assert disk.appends == 0


async def test_what_is_forgotten_in_passing_is_flushed_with_the_next_group() -> None:
    disk = MemoryDisk()
    async with running(Journal(disk, at_once)) as journal:
        await journal.remember("a", JournalEntry(STAMP))
        journal.forget_soon(["a", "unknown"])
        await journal.remember("b", LEAVING)
        assert disk.appends == 2
    assert Journal(disk, at_once).load() == {"b": LEAVING}


class Gate:
    """An offload that waits to be let through."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, function: Callable[[], T]) -> T:
        await self.open.wait()
        return function()


async def test_a_thousand_who_wait_share_two_flushes() -> None:
    disk, gate = MemoryDisk(), Gate()
    async with running(Journal(disk, gate)) as journal:
        callers = [
            asyncio.create_task(journal.remember(f"m-{n}", JournalEntry(STAMP)))
            for n in range(1_000)
        ]
        await asyncio.sleep(0)
        late = asyncio.create_task(journal.remember("late", JournalEntry()))
        await asyncio.sleep(0)
        assert not any(caller.done() for caller in callers)
        gate.open.set()
        await asyncio.gather(*callers, late)
    assert disk.appends <= 2
    assert len(Journal(disk, at_once).load()) == 1_001


async def test_a_caller_that_is_cancelled_harms_no_other() -> None:
    disk, gate = MemoryDisk(), Gate()
    async with running(Journal(disk, gate)) as journal:
        first = asyncio.create_task(journal.remember("a", JournalEntry()))
        second = asyncio.create_task(journal.remember("b", JournalEntry()))
        await asyncio.sleep(0)
        first.cancel()
        gate.open.set()
        await second
    assert "b" in Journal(disk, at_once).load()


async def test_the_past_is_dropped_when_there_is_more_of_it_than_of_the_present() -> None:
    disk = MemoryDisk()
    async with running(Journal(disk, at_once)) as journal:
        for number in range(600):
            await journal.remember("m", JournalEntry(deadline_ns=number))
    assert disk.replaces >= 1
    assert len(disk.files["journal"].splitlines()) < 300
    assert Journal(disk, at_once).load() == {"m": JournalEntry(deadline_ns=599)}


async def test_a_full_disk_fails_those_who_wait_and_is_made_good_when_there_is_room() -> None:
    disk = MemoryDisk()
    async with running(Journal(disk, at_once)) as journal:
        await journal.remember("a", JournalEntry(STAMP))
        disk.full, disk.tear = True, 20
        with pytest.raises(OSError, match="No space"):
            await journal.remember("b", LEAVING)
        assert not journal.knows("b")
        assert Journal(disk, at_once).load() == {"a": JournalEntry(STAMP)}
        disk.full = False
        await journal.remember("c", JournalEntry())
    assert Journal(disk, at_once).load() == {"a": JournalEntry(STAMP), "c": JournalEntry()}


async def written(*machines: str) -> bytes:
    disk = MemoryDisk()
    async with running(Journal(disk, at_once)) as journal:
        for machine in machines:
            await journal.remember(machine, JournalEntry(STAMP))
    return disk.files["journal"]


async def test_a_line_cut_off_by_a_crash_is_passed_over_and_nothing_follows_it() -> None:
    content = await written("a", "b")
    for end in range(len(content) // 2 + 1, len(content)):
        disk = MemoryDisk({"journal": content[:end]})
        journal = Journal(disk, at_once)
        assert journal.load() == {"a": JournalEntry(STAMP)}
        async with running(journal):
            await journal.remember("c", JournalEntry())
        assert Journal(disk, at_once).load() == {"a": JournalEntry(STAMP), "c": JournalEntry()}


async def test_a_damaged_line_is_passed_over_counted_and_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    content = await written("a", "b", "c")
    damaged = content.replace(b'"b"', b'"x"')
    disk = MemoryDisk({"journal": damaged})
    with caplog.at_level(logging.ERROR):
        assert set(Journal(disk, at_once).load()) == {"a", "c"}
    assert "journal damaged" in caplog.text
    assert [getattr(record, "lines", None) for record in caplog.records] == [[2]]
    assert disk.files["journal.damaged"] == damaged


async def test_a_line_of_another_release_is_no_reason_not_to_start() -> None:
    body = b'{"machine": 7}'
    line = b"%08x %b\n" % (zlib.crc32(body), body)
    disk = MemoryDisk({"journal": line + await written("a")})
    assert set(Journal(disk, at_once).load()) == {"a"}
