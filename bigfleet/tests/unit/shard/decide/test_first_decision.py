"""A shard that starts decides as soon as every provider is listed."""

from __future__ import annotations

import asyncio

import pytest

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from sim.calls import SimCalls
from whole.living import Setting, Whole, cluster, live, provider


@pytest.mark.parametrize("seconds", [0.5, 2.0, 6.0])
def test_the_first_decision_follows_the_last_first_list_at_once(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = SimCalls.list

    async def slow(calls: SimCalls, request: pb.ListFilter, deadline: float) -> pb.MachineList:
        await asyncio.sleep(seconds)
        return await listed(calls, request, deadline)

    async def story(whole: Whole) -> None:
        shard = whole.shard
        await whole.until(shard.lister.all_first_merged, 60.0, "the first Lists")
        merged = whole.loop.time()
        assert merged >= seconds
        await whole.until(lambda: shard.cycle.number > 0, 60.0, "a decision")
        assert whole.loop.time() - merged < 0.5

    monkeypatch.setattr(SimCalls, "list", slow)
    live(Setting([provider("p1", 5), provider("p2", 5)], [cluster()]), story)
