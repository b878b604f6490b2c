"""After a restart: what the journal adds to the first List."""

import pytest

from bigfleet.model import Departure, PenaltyBucket, Stamp
from bigfleet.shard.state.journal import JournalEntry
from bigfleet.wire.machines import metadata_from_stamp
from reconciling import (
    CONFIGURED,
    CONFIGURING,
    CREATING,
    DRAINING,
    FAILED,
    IDLE,
    SPECULATIVE,
    Cloud,
    MemoryDisk,
    on_virtual_time,
    record,
    shard_of,
)

MINE = Stamp("c-1", "shape", "", "print", 100, PenaltyBucket.ZERO, PenaltyBucket.ZERO, 7)
THEIRS = Stamp("c-2", "shape", "g", "other", 200, PenaltyBucket.ZERO, PenaltyBucket.PINNED, 8)
ASKED = JournalEntry(leaving=True, deadline_ns=99, instruction_id="i-2", final=True)
GRACE = JournalEntry(
    stamp=MINE, leaving=True, for_stamp=THEIRS, deadline_ns=99, instruction_id="i-1"
)


async def remembering(disk: MemoryDisk, **entries: JournalEntry) -> MemoryDisk:
    """A disk left behind by a shard that remembered this."""
    async with shard_of(disk=disk) as shard:
        for machine, entry in entries.items():
            await shard.journal.remember(machine, entry)
    return disk


@on_virtual_time
async def test_stamps_and_drains_come_back_with_the_machines() -> None:
    disk = await remembering(
        MemoryDisk(),
        creating=JournalEntry(MINE), idle=JournalEntry(MINE), grace=GRACE,
        draining=GRACE, drained=GRACE,
        asked=ASKED,
    )  # fmt: skip
    cloud = Cloud()
    bound = record("grace", CONFIGURED, shard_metadata=metadata_from_stamp(MINE))
    cloud.put(record("creating", CREATING), record("idle"), bound, record("asked", CONFIGURED))
    cloud.put(record("draining", DRAINING), record("drained", IDLE))
    async with shard_of(cloud, disk=disk) as shard:
        await shard.after(1)
        assert shard.known("creating").stamp == MINE
        assert shard.known("idle").stamp == MINE
        assert shard.known("grace").stamp == MINE
        now = shard.known("grace").leaving
        assert now is not None
        assert now.for_stamp == THEIRS
        assert shard.known("asked").leaving == Departure(None, now.since_ns, final=True)
        assert shard.known("draining").leaving == Departure(THEIRS, now.since_ns)
        assert shard.known("drained").stamp == THEIRS
        assert all(shard.journal.knows(name) for name in shard.states())


@pytest.mark.parametrize("state", [SPECULATIVE, CONFIGURED, FAILED])
def test_what_has_moved_on_is_forgotten(state: int) -> None:
    @on_virtual_time
    async def story() -> None:
        disk = await remembering(MemoryDisk(), m=JournalEntry(MINE), gone=GRACE)
        cloud = Cloud()
        cloud.put(record("m", state))
        async with shard_of(cloud, disk=disk) as shard:
            await shard.after(1)
            assert shard.known("m").stamp is None
            assert not shard.journal.knows("m")
            assert not shard.journal.knows("gone")

    story()


@on_virtual_time
async def test_nothing_is_forgotten_before_every_provider_was_heard() -> None:
    disk = await remembering(MemoryDisk(), late=JournalEntry(MINE))
    first, second = Cloud("first"), Cloud("second")
    second.put(record("late", CREATING))
    second.hangs = True
    async with shard_of(first, second, disk=disk) as shard:
        await shard.after(30)
        assert shard.journal.knows("late")
        second.hangs = False
        await shard.after(150)
        assert shard.known("late").stamp == MINE


@on_virtual_time
async def test_configuring_has_its_stamp_from_the_metadata_or_else_from_the_journal() -> None:
    disk = await remembering(
        MemoryDisk(),
        told=JournalEntry(THEIRS),
        silent=JournalEntry(MINE),
        foreign=JournalEntry(THEIRS),
    )
    cloud = Cloud()
    cloud.put(record("told", CONFIGURING, shard_metadata=metadata_from_stamp(MINE)))
    cloud.put(record("silent", CONFIGURING), record("foreign", CONFIGURING))
    async with shard_of(cloud, disk=disk) as shard:
        await shard.after(1)
        assert shard.known("told").stamp == MINE
        assert shard.known("silent").stamp == MINE
        assert shard.known("foreign").stamp is None


@on_virtual_time
async def test_an_entry_is_forgotten_when_the_machine_has_arrived() -> None:
    cloud = Cloud()
    cloud.put(record("m", CREATING))
    disk = await remembering(MemoryDisk(), m=JournalEntry(MINE))
    async with shard_of(cloud, disk=disk) as shard:
        await shard.after(1)
        cloud.put(record("m", IDLE))
        await shard.after(2)
        assert shard.known("m").stamp == MINE
        assert shard.journal.knows("m")
        cloud.put(record("m", CONFIGURED, shard_metadata=metadata_from_stamp(MINE)))
        await shard.after(11)
        assert not shard.journal.knows("m")


@on_virtual_time
async def test_bindings_and_stamps_of_bound_machines_need_no_journal() -> None:
    cloud = Cloud()
    cloud.put(record("m", CONFIGURED, shard_metadata=metadata_from_stamp(MINE)))
    async with shard_of(cloud) as shard:
        await shard.after(1)
        assert (shard.known("m").cluster, shard.known("m").stamp) == ("c-1", MINE)
