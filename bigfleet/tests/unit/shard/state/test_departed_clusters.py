"""A cluster that was forgotten stays so over restarts, until it is heard again."""

from __future__ import annotations

import asyncio
import logging

import pytest

from bigfleet.shard.errors import DataFileError
from bigfleet.shard.server.status import Facade
from bigfleet.shard.state.departed_clusters import FILE, DepartedClusters
from coordinating import DictDisk, inline
from whole.living import Setting, Whole, cluster, live, provider


def loaded(disk: DictDisk) -> DepartedClusters:
    made = DepartedClusters(disk, inline)
    made.load()
    return made


async def test_who_is_forgotten_is_on_disk_before_it_counts() -> None:
    disk = DictDisk()
    forgotten = loaded(disk)
    await forgotten.add("c-1")
    assert list(loaded(disk)) == ["c-1"]
    disk.fails = True
    with pytest.raises(OSError, match="no room"):
        await forgotten.add("c-2")
    assert "c-2" not in forgotten


async def test_one_that_is_heard_is_off_the_list_first() -> None:
    disk = DictDisk()
    forgotten = loaded(disk)
    await forgotten.add("c-1")
    disk.fails = True
    await forgotten.mark_present("c-2")
    with pytest.raises(OSError, match="no room"):
        await forgotten.mark_present("c-1")
    assert "c-1" in forgotten
    disk.fails = False
    await forgotten.mark_present("c-1")
    assert list(loaded(disk)) == []


async def test_those_without_machines_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    disk = DictDisk()
    forgotten = loaded(disk)
    await forgotten.add("c-1")
    await forgotten.add("c-2")
    disk.fails = True
    await forgotten.tidy(lambda cluster: cluster == "c-2")
    assert "forgotten clusters stay in their file" in caplog.text
    disk.fails = False
    await forgotten.tidy(lambda cluster: cluster == "c-2")
    assert list(loaded(disk)) == ["c-2"]


@pytest.mark.parametrize("content", [b"{", b'{"c-1": 1}', b"\xff"])
def test_a_file_that_cannot_be_read_says_how_to_repair_it(content: bytes) -> None:
    disk = DictDisk()
    disk.files[FILE] = content
    with pytest.raises(DataFileError, match=r"forgotten\.json.*remove it"):
        loaded(disk)


def setting() -> Setting:
    return Setting([provider("p1", 40)], [cluster(replicas=30)])


def held(whole: Whole) -> int:
    """Machines of the cluster, as the provider has them."""
    return sum(slot.cluster == "c1" for slot in whole.provider.slots.values())


async def forget(whole: Whole) -> None:
    """The cluster falls silent and is forgotten; a few of its machines are reclaimed."""
    await whole.until(lambda: held(whole) == 30, 300.0, "30 bound machines")
    whole.world.network.cut("s1", "c1")
    whole.world.board.break_streams("c1")
    await whole.until(lambda: not whole.shard.sessions.connected("c1"), 60.0)
    whole.world.monitor.excuse("c1", whole.loop.time())
    await Facade(whole.shard).forget_cluster("c1")
    await whole.until(lambda: held(whole) < 30, 120.0, "the first reclaim")


def test_what_a_forgotten_cluster_had_goes_back_after_a_restart_too() -> None:
    async def story(whole: Whole) -> None:
        await forget(whole)
        await whole.restart()
        await whole.until(lambda: held(whole) == 0, 1800.0, "the last machine")
        assert whole.metric("reclaims_unforced_total") == 0
        await whole.restart()
        await asyncio.sleep(30.0)
        assert list(whole.shard.forgotten) == [], "there is nothing left to remember it for"

    live(setting(), story)


def test_one_that_came_back_keeps_its_machines_over_the_next_restart() -> None:
    async def story(whole: Whole) -> None:
        await forget(whole)
        whole.world.network.repair_all()
        await whole.until(lambda: whole.operator().connected, 120.0, "a session")
        await whole.until(lambda: held(whole) == 30, 900.0, "30 bound machines")
        whole.world.network.cut("s1", "c1")
        await whole.restart()
        await asyncio.sleep(300.0)
        assert held(whole) == 30, "silence alone takes nothing"

    live(setting(), story)


def test_without_room_on_disk_its_roll_ups_wait(caplog: pytest.LogCaptureFixture) -> None:
    async def story(whole: Whole) -> None:
        await forget(whole)
        whole.world.disk.full = True
        whole.world.network.repair_all()
        await whole.until(lambda: whole.operator().connected, 120.0, "a session")
        await asyncio.sleep(30.0)
        assert not whole.shard.needs.accepted("c1")
        whole.world.disk.full = False
        await whole.until(lambda: whole.shard.needs.accepted("c1"), 60.0, "a roll-up")

    caplog.set_level(logging.ERROR)
    live(setting(), story)
    assert "roll-up ignored" in caplog.text
