"""Assignments outlive the process and the coordinator's absence; flags win over what is registered.

Quotas are this shard's own share; a provider that cannot be dialled costs nothing but itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from bigfleet.provider import ProviderSite
from bigfleet.shard.state.assignments import FILE, Assignments
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinating import DictDisk, inline


class Registry:
    """Remembers which providers it was told to use."""

    def __init__(self) -> None:
        self.used: list[list[ProviderSite]] = []
        self.changed = asyncio.Event()

    async def use(self, sites: list[ProviderSite]) -> None:
        self.used.append(sites)

    async def told(self, times: int) -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(self.used) == times


def assigned() -> pb.ShardAssignments:
    made = pb.ShardAssignments(clusters=["c-1"], revision=7)
    made.providers.add(name="cloud", address="cloud:9001", region="eu")
    made.providers.add(name="metal", address="elsewhere:9001")
    made.quotas.add(provider="cloud", region="eu", per_shard={"s-1": 30, "s-2": 70})
    made.quotas.add(provider="cloud", region="us", per_shard={"s-2": 5})
    return made


async def followed(assignments: Assignments, times: int = 1) -> Registry:
    registry = Registry()
    task = asyncio.create_task(assignments.follow(registry, registry.changed.set))  # type: ignore[arg-type]
    await registry.told(times)
    task.cancel()
    return registry


async def test_they_survive_a_restart_without_a_coordinator() -> None:
    disk = DictDisk()
    before = Assignments("s-1", [], disk, inline)
    before.take(assigned())
    await followed(before)
    after = Assignments("s-1", [], disk, inline)
    after.load()
    assert {site.name for site in after.sites()} == {"cloud", "metal"}
    assert after.quotas() == {("cloud", "eu"): 30, ("cloud", "us"): 0}
    assert after.clusters == ("c-1",)


def test_a_name_given_by_a_flag_is_the_flags() -> None:
    flag = ProviderSite("metal", "here:9001")
    assignments = Assignments("s-1", [flag], DictDisk(), inline)
    assert assignments.sites() == [flag]
    assignments.take(assigned())
    assert assignments.sites() == [flag, ProviderSite("cloud", "cloud:9001", "eu")]


async def test_the_providers_follow_what_is_assigned_and_flags_need_no_coordinator() -> None:
    flag = ProviderSite("metal", "here:9001")
    assignments = Assignments("s-1", [flag], DictDisk(), inline)
    registry = Registry()
    task = asyncio.create_task(assignments.follow(registry, registry.changed.set))  # type: ignore[arg-type]
    await registry.told(1)
    assert registry.used[0] == [flag]
    assignments.take(assigned())
    await registry.told(2)
    assert {site.name for site in registry.used[1]} == {"cloud", "metal"}
    assignments.take(pb.ShardAssignments(revision=8))
    await registry.told(3)
    assert registry.used[2] == [flag]
    assert registry.changed.is_set()
    task.cancel()


def test_a_registered_provider_that_cannot_be_dialled_is_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assignments = Assignments("s-1", [], DictDisk(), inline)
    broken = assigned()
    broken.providers.add(name="", address="nowhere")
    assignments.take(broken)
    assert {site.name for site in assignments.sites()} == {"cloud", "metal"}
    assert "registered provider cannot be dialled" in caplog.text


async def test_a_disk_that_refuses_costs_the_memory_and_not_the_assignments(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = DictDisk()
    disk.fails = True
    assignments = Assignments("s-1", [], disk, inline)
    assignments.take(assigned())
    registry = await followed(assignments)
    assert {site.name for site in registry.used[0]} == {"cloud", "metal"}
    assert "assignments are not written" in caplog.text


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda content: b"", "is empty"),
        (lambda content: content[:-1], "checksum"),
        (lambda content: content[:20] + b"X" + content[21:], "checksum"),
        (lambda content: b"\xff\xff", "Error parsing"),
    ],
)
async def test_a_damaged_file_is_reported_with_the_remedy(
    damage: Callable[[bytes], bytes], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    disk = DictDisk()
    before = Assignments("s-1", [], disk, inline)
    before.take(assigned())
    await followed(before)
    disk.files[FILE] = damage(disk.files[FILE])
    after = Assignments("s-1", [], disk, inline)
    after.load()
    assert after.sites() == []
    assert "restore the file from a backup" in caplog.text
    assert words in vars(caplog.records[-1])["error"]


def test_a_file_of_an_older_release_is_read() -> None:
    disk = DictDisk()
    disk.files[FILE] = assigned().SerializeToString()
    assignments = Assignments("s-1", [], disk, inline)
    assignments.load()
    assert assignments.clusters == ("c-1",)
