"""How long ago a List was merged: news or none, but a List and nothing else."""

from __future__ import annotations

import asyncio

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from reconciling import DOWN, Shard, cloud_of, on_virtual_time, record, shard_of


def age(shard: Shard) -> float:
    (status,) = shard.lister.status()
    assert status.age_seconds is not None
    return status.age_seconds


@on_virtual_time
async def test_a_list_without_news_counts_as_merged() -> None:
    cloud = cloud_of("a")
    async with shard_of(cloud) as shard:
        await shard.after(1)
        for _ in range(50):
            merged = await shard.after(11)
            assert merged.merged == {"cloud"}
            assert merged.changes == 0
            assert age(shard) < 11
        assert sum(not since for _, since in cloud.lists) == 1


@on_virtual_time
async def test_a_list_without_news_wakes_no_task_and_waits_for_none() -> None:
    cloud = cloud_of("a")
    async with shard_of(cloud) as shard:
        await shard.after(1)
        shard.woken.clear()
        await asyncio.sleep(300)
        assert len(cloud.lists) == 31
        assert not shard.woken.is_set()
        assert age(shard) > 290


@on_virtual_time
async def test_a_look_at_one_machine_is_no_list() -> None:
    cloud = cloud_of("a")
    async with shard_of(cloud) as shard:
        await shard.after(1)
        cloud.list_raw = broken  # type: ignore[method-assign]
        await shard.after(100)
        cloud.put(record("a", price_per_hour=0.25))
        shard.lister.refresh("a")
        merged = await shard.after(1)
        assert (merged.changes, merged.merged) == (1, set())
        assert age(shard) > 90


async def broken(request: pb.ListFilter, seconds: float) -> bytes:
    """A List that fails."""
    raise DOWN
