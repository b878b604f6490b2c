"""Re-stamps survive a restart: machines count for the needs that claimed them last."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from bigfleet.decision import Plan
from bigfleet.model import Machine, Need, Stamp
from bigfleet.shard.state.restamps import FILE, MOST_WAITING, Restamps, lines_of, renewed
from bigfleet.wire.machines import metadata_from_stamp
from living import Living
from reconciling import CONFIGURED, Cloud, MemoryDisk, at_once, on_virtual_time, record, shard_of
from sim.loop import virtual_loop
from worlds import NOW, A, B, S, machine, need, serving

HIGH = need(A, cpu=12, unit=4, priority=1000)
LOW = need(A, cpu=8, unit=4, priority=10)
FLEET = [serving("m-1", LOW), serving("m-2", LOW), machine("m-idle")]


def claimed_by_the_high_need() -> Plan:
    """Both machines of the low need move to the high one, and one idle machine is taken."""
    return Living().plan(FLEET, [HIGH], NOW)


def given(plan: Plan) -> dict[str, Stamp]:
    """The stamps of a plan, as its machines have them afterwards."""
    stamps, symbols = plan.stamps, plan.fleet.symbols
    columns = (stamps.machine.tolist(), stamps.identity.tolist(), stamps.sequence.tolist())
    return {plan.fleet.ids[m]: symbols.stamp(i, s) for m, i, s in zip(*columns, strict=True)}


@asynccontextmanager
async def writing(disk: MemoryDisk, few_bytes: int = 1 << 20) -> AsyncIterator[Restamps]:
    restamps = Restamps(disk, at_once, few_bytes)
    restamps.load()
    task = asyncio.create_task(restamps.run())
    try:
        yield restamps
        await asyncio.sleep(0.01)
    finally:
        task.cancel()


@on_virtual_time
async def test_stamps_that_bound_machines_were_given_are_there_after_a_restart() -> None:
    disk, plan = MemoryDisk(), claimed_by_the_high_need()
    async with writing(disk) as restamps:
        restamps.add(lines_of(plan))
    expected = {name: stamp for name, stamp in given(plan).items() if name != "m-idle"}
    assert set(given(plan)) == {"m-1", "m-2", "m-idle"}
    assert set(expected) == {"m-1", "m-2"}
    assert {stamp.fingerprint for stamp in expected.values()} == {HIGH.profile.fingerprint}
    assert Restamps(disk, at_once).load() == expected


@on_virtual_time
async def test_a_cycle_that_moves_nothing_writes_nothing() -> None:
    plan = Living().plan([serving("m-1", LOW), serving("m-2", LOW)], [LOW], NOW)
    disk = MemoryDisk()
    async with writing(disk) as restamps:
        restamps.add(lines_of(plan))
    assert disk.appends == 0


@on_virtual_time
async def test_a_machine_is_listed_with_its_first_stamp_and_known_with_its_last() -> None:
    plan, disk, cloud = claimed_by_the_high_need(), MemoryDisk(), Cloud()
    async with writing(disk) as restamps:
        restamps.add(lines_of(plan))
    first = FLEET[0].stamp
    assert first is not None
    cloud.put(record("m-1", CONFIGURED, cluster=A, shard_metadata=metadata_from_stamp(first)))
    async with shard_of(cloud, disk=disk) as shard:
        await shard.after(1)
        assert shard.known("m-1").stamp == given(plan)["m-1"]


def stamped(name: str, row: Need, sequence: int, cpu: int) -> Machine:
    found = serving(name, row, cpu=cpu)
    assert found.stamp is not None
    return replace(found, stamp=replace(found.stamp, sequence=sequence))


def left_over(fleet: list[Machine], needs: list[Need]) -> set[str]:
    claimed = Living().plan(fleet, needs, NOW).claimed
    return {m.id for m, row in zip(fleet, claimed.tolist(), strict=True) if row < 0}


def test_with_its_first_stamp_a_machine_would_leave_another_one_over_at_unchanged_demand() -> None:
    # m-small left the high need for a while, which got m-large then, and came back to the low one.
    needs = [high, low] = [need(A, cpu=2, unit=1, priority=1000), need(A, cpu=12, unit=2)]
    fleet = [
        stamped("m-large", high, 3, cpu=16),
        stamped("m-new", low, 5, cpu=8),
        stamped("m-old", low, 1, cpu=4),
        stamped("m-small", high, 2, cpu=4),
    ]
    last = stamped("m-small", low, 4, cpu=4).stamp
    assert last is not None
    assert left_over(fleet, needs) == {"m-large"}
    assert left_over([*fleet[:3], renewed(fleet[3], last)], needs) == set()


def test_a_stamp_is_renewed_only_within_its_cluster_and_by_a_later_one() -> None:
    known = FLEET[0]
    assert known.stamp is not None
    later = replace(known.stamp, fingerprint="other", sequence=known.stamp.sequence + 1)
    assert renewed(known, later).stamp == later
    assert renewed(known, replace(later, cluster=B)) == known
    assert renewed(known, replace(later, sequence=known.stamp.sequence - 1)) == known
    unstamped: Machine = replace(known, stamp=None)
    assert renewed(unstamped, later) == unstamped


@on_virtual_time
async def test_the_file_is_written_again_with_what_still_holds() -> None:
    disk, plan = MemoryDisk(), claimed_by_the_high_need()
    now = given(plan)
    living = Living()
    left = [replace(FLEET[0], stamp=now["m-1"]), replace(FLEET[1], state=S.DRAINING)]
    later = living.plan(left, [], NOW).fleet
    async with writing(disk, few_bytes=0) as restamps:
        restamps.add(lines_of(plan))
        await asyncio.sleep(0.01)
        assert disk.replaces == 0
        restamps.all_listed(lambda: later)
        restamps.add(lines_of(plan))
    assert disk.replaces == 1
    assert Restamps(disk, at_once).load() == {"m-1": now["m-1"]}


def test_what_a_crash_cut_off_is_passed_over_and_nothing_is_appended_to_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines = lines_of(claimed_by_the_high_need())
    whole = MemoryDisk({FILE: lines})
    torn = MemoryDisk({FILE: lines + lines[:40]})
    assert Restamps(torn, at_once).load() == Restamps(whole, at_once).load()
    assert torn.files[FILE] == lines
    assert not caplog.records
    damaged = MemoryDisk({FILE: b"0" + lines[1:] + lines})
    assert Restamps(damaged, at_once).load() == Restamps(whole, at_once).load()
    assert "check the disk" in caplog.text


def test_a_full_disk_is_waited_for_and_what_waits_is_bounded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk, lines = MemoryDisk(full=True), lines_of(claimed_by_the_high_need())

    async def story() -> None:
        async with writing(disk) as restamps:
            restamps.add(b"x" * MOST_WAITING)
            await asyncio.sleep(0.01)
            restamps.add(lines)
            await asyncio.sleep(0.5)
            disk.full = False
            await asyncio.sleep(2.0)

    with caplog.at_level(logging.WARNING):
        virtual_loop("full").run(story())
    assert "restamps cannot be written" in caplog.text
    assert "restamps dropped" in caplog.text
    assert disk.files[FILE] == lines
