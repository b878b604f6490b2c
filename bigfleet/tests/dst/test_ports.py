"""The simulated disk and clock promise what a shard may rely on, and nothing more."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from sim.loop import virtual_loop
from sim.ports import EPOCH_NS, NANO, DiskFullError, SimClock, SimDisk, SimOffload
from sim.process import Process

LINE = b"0123456789\n"


def crashed_contents(seed: int) -> tuple[bytes | None, bytes | None]:
    """What is left of two files when a crash comes while writes are under way."""
    disk = SimDisk(Random(seed))
    disk.replace("epoch", b"1")
    disk.append("journal", LINE)
    with disk.answered_later():
        disk.replace("epoch", b"2")
        disk.append("journal", LINE)
    disk.crash()
    return disk.read("epoch"), disk.read("journal")


def test_what_was_answered_survives_and_what_was_not_may_be_lost_or_torn() -> None:
    left = [crashed_contents(seed) for seed in range(200)]
    epochs = {epoch for epoch, _ in left}
    journals = {journal or b"" for _, journal in left}
    assert epochs == {b"1", b"2"}
    assert all(journal.startswith(LINE) for journal in journals)
    assert LINE in journals
    assert LINE + LINE in journals
    assert any(len(LINE) < len(journal) < 2 * len(LINE) for journal in journals)


def test_a_later_write_is_never_there_without_an_earlier_one() -> None:
    for seed in range(200):
        disk = SimDisk(Random(seed))
        with disk.answered_later():
            for number in range(5):
                disk.append("journal", b"%d" % number)
        disk.crash()
        assert b"01234".startswith(disk.read("journal") or b"")


def test_a_full_disk_writes_nothing() -> None:
    disk = SimDisk(Random(1))
    disk.append("journal", LINE)
    disk.full = True
    with pytest.raises(DiskFullError):
        disk.append("journal", LINE)
    with pytest.raises(DiskFullError):
        disk.replace("journal", b"")
    assert disk.read("journal") == LINE


def test_a_process_can_die_between_its_work_and_the_answer() -> None:
    async def main(seed: int) -> tuple[bool, bytes | None]:
        disk, process, answered = SimDisk(Random(seed)), Process("p"), asyncio.Event()
        process.at_death(disk.crash)
        offload = SimOffload(process, disk, Random(seed), seconds=1.0)

        async def work() -> None:
            await offload(lambda: disk.append("journal", LINE))
            answered.set()

        process.spawn(work(), "work")
        process.crash_after(2 + seed % 5)
        await asyncio.sleep(10)
        return answered.is_set(), disk.read("journal")

    outcomes = {virtual_loop(seed).run(main(seed)) for seed in range(90)}
    assert (True, LINE) in outcomes
    assert (False, None) in outcomes
    assert (False, LINE) in outcomes
    assert all(content == LINE for answered, content in outcomes if answered)


def test_the_wall_clock_can_be_set_and_the_other_one_cannot() -> None:
    async def main() -> tuple[int, float]:
        clock = SimClock()
        await asyncio.sleep(5)
        clock.jump(-60)
        return clock.now(), clock.monotonic()

    assert virtual_loop(1).run(main()) == (EPOCH_NS - 55 * NANO, 5.0)
