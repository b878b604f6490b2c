"""The model provider keeps the contract of wire.md, sections 3 and 7."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import grpc
import pytest

from bigfleet.model import CapacityType
from bigfleet.provider import FencedError, ProviderClient, ProviderError, ProviderSite
from bigfleet.wire.fencing import FencingStamps
from sim.calls import SimCalls
from sim.loop import virtual_loop
from sim.network import Network
from sim.process import Process
from sim.provider import ModelProvider
from sim.slots import Offer, S, Slot
from sim.trace import Trace

OFFER = Offer("m.large", "z-a", "r-1", CapacityType.ON_DEMAND, 0.1, 0.0, 4, 16)


class Bench:
    """A provider, and clients of processes that call it."""

    def __init__(self, trace: Trace, seed: int) -> None:
        self.net = Network(Random(seed), trace)
        slots = [Slot(f"m-{number}", OFFER, S.SPECULATIVE) for number in range(6)]
        self.provider = ModelProvider("p1", slots, Random(seed + 1), trace)

    def state(self, machine_id: str) -> S:
        return self.provider.slots[machine_id].state

    def client(self, epoch: int, shard: str = "s1", process: Process | None = None) -> Any:
        calls = SimCalls(process or Process(shard), shard, self.provider, self.net)
        site = ProviderSite("p1", "p1:9001")
        return ProviderClient(site, FencingStamps(shard, epoch), calls)


def simulated(story: Callable[[Bench], Coroutine[Any, Any, None]], seed: int = 1) -> None:
    loop = virtual_loop(seed)

    async def main() -> None:
        await story(Bench(Trace(loop), seed))

    loop.run(main())


def test_a_machine_lives_from_slot_to_node_and_back() -> None:
    async def story(bench: Bench) -> None:
        client, slot = bench.client(1), bench.provider.slots["m-0"]
        ack = await client.create("m-0")
        assert ack.machine.state is S.CREATING
        await asyncio.sleep(30)
        assert (await client.get("m-0")).state is S.IDLE
        await client.configure("m-0", "c1", b"blob", {"k": "v"})
        await asyncio.sleep(30)
        assert (slot.state, slot.cluster, slot.metadata) == (S.CONFIGURED, "c1", {"k": "v"})
        await client.drain("m-0", 10)
        await asyncio.sleep(30)
        assert (slot.state, slot.cluster, slot.metadata) == (S.IDLE, "", {})
        await client.delete("m-0")
        await asyncio.sleep(30)
        assert (slot.state, slot.host) == (S.SPECULATIVE, "")

    simulated(story)


def test_a_repeat_gives_the_same_operation_and_starts_nothing() -> None:
    async def story(bench: Bench) -> None:
        client = bench.client(1)
        first, second = await client.create("m-0"), await client.create("m-0")
        await asyncio.sleep(30)
        third = await client.create("m-0")
        assert first.operation_id == second.operation_id == third.operation_id
        assert bench.provider.operations == 1

    simulated(story)


def test_an_older_process_of_the_same_shard_is_fenced_machine_by_machine() -> None:
    async def story(bench: Bench) -> None:
        old, new, other = bench.client(1), bench.client(2), bench.client(1, "s2")
        await new.create("m-0")
        with pytest.raises(FencedError):
            await old.create("m-0")
        await old.create("m-1")
        await other.create("m-0")

    simulated(story)


def test_a_mutation_from_the_wrong_state_is_refused() -> None:
    async def story(bench: Bench) -> None:
        with pytest.raises(ProviderError) as refused:
            await bench.client(1).drain("m-0", 10)
        assert refused.value.code is grpc.StatusCode.INTERNAL

    simulated(story)


def test_cursors_walk_all_changes_in_pages() -> None:
    async def story(bench: Bench) -> None:
        client = bench.client(1)
        first = await client.list(max_results=4)
        rest = await client.list(since=first.revision)
        seen = [machine.id for machine in (*first.machines, *rest.machines)]
        assert seen == [f"m-{number}" for number in range(6)]
        await client.create("m-2")
        delta = await client.list(since=rest.revision)
        assert [machine.id for machine in delta.machines] == ["m-2"]
        assert (await client.list(since=delta.revision)).machines == ()
        assert len((await client.list(since=b"nonsense")).machines) == 6

    simulated(story)


def test_a_request_on_the_way_arrives_although_its_sender_died() -> None:
    async def story(bench: Bench) -> None:
        process = Process("s1")
        client = bench.client(1, process=process)
        bench.net.weather.delay = 1.0
        process.spawn(client.create("m-0"), "create")
        process.crash_after(1)
        await asyncio.sleep(60)
        assert bench.provider.slots["m-0"].state is S.IDLE

    simulated(story)


def test_a_lost_answer_hides_what_was_done() -> None:
    async def story(bench: Bench) -> None:
        bench.net.weather.lost_answer = 1.0
        with pytest.raises(ProviderError) as lost:
            await bench.client(1).create("m-0", seconds=5)
        assert lost.value.code.name in ("UNAVAILABLE", "DEADLINE_EXCEEDED")
        assert bench.provider.operations == 1

    for seed in range(4):
        simulated(story, seed)


def test_a_restart_goes_on_with_what_was_under_way() -> None:
    async def story(bench: Bench) -> None:
        client = bench.client(1)
        await client.create("m-0")
        bench.provider.stop()
        with pytest.raises(ProviderError):
            await client.get("m-0")
        await asyncio.sleep(100)
        assert bench.state("m-0") is S.CREATING
        bench.provider.start()
        await asyncio.sleep(60)
        assert bench.state("m-0") is S.IDLE

    simulated(story)


def test_no_stock_fails_the_machine_and_heals() -> None:
    async def story(bench: Bench) -> None:
        bench.provider.habits.out_of_stock.add(OFFER.pool)
        await bench.client(1).create("m-0")
        await asyncio.sleep(21)
        assert bench.state("m-0") is S.FAILED
        assert bench.provider.slots["m-0"].last_error.startswith("OutOfCapacity:")
        await asyncio.sleep(60)
        assert bench.state("m-0") is S.SPECULATIVE

    simulated(story)
