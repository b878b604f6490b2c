"""Every invariant notices what it is there for: planted bugs, one at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Coroutine, Mapping
from random import Random
from typing import Any

import pytest

from bigfleet.decision import ActionKind
from bigfleet.model import CapacityType, HostRef, Machine, PenaltyBucket, Resources, Stamp
from bigfleet.model.columns import Symbols
from bigfleet.provider import ProviderClient, ProviderError, ProviderSite
from bigfleet.shard.machines.book import Book
from bigfleet.shard.machines.orders import Order
from bigfleet.wire.fencing import FencingStamps
from sim.calls import SimCalls
from sim.handle import RowKey, RowVerdict
from sim.loop import virtual_loop
from sim.monitor import Monitor
from sim.network import Network
from sim.ports import SimClock
from sim.process import Process
from sim.provider import ModelProvider, Request
from sim.slots import WAYS, Kind, Offer, S, Slot
from sim.trace import InvariantError, Trace

A = ActionKind
OFFER = Offer("m.large", "z-a", "r-1", CapacityType.ON_DEMAND, 0.1, 0.0, 4, 16)


def stamp(cluster: str = "c1", priority: int = 100, group: str = "") -> Stamp:
    none = PenaltyBucket.UNSPECIFIED
    return Stamp(cluster, "shape", group, "print", priority, none, none, 1)


def machine(name: str, state: S, cluster: str = "", **rest: Any) -> Machine:
    host = None if state is S.SPECULATIVE else HostRef("p1", f"host-{name}")
    return Machine(name, state, host, "p1", cluster=cluster, **rest)


class Handle:
    """A shard that says what a test wants."""

    def __init__(self) -> None:
        self.process = Process("s1.1")
        self.book = Book(Symbols(), SimClock())
        self.heard = {"c1"}
        self.is_partial = False
        self.ownership = None

    def partial(self) -> bool:
        return self.is_partial

    def reported(self, cluster: str) -> bool:
        return cluster in self.heard

    def configured(self, cluster: str) -> int:
        return sum(
            known.state is S.CONFIGURED
            for name in self.book.bound(cluster)
            if (known := self.book.get(name)) is not None
        )

    def priorities(self, cluster: str) -> Collection[int]:
        return {1000}

    def connected(self, cluster: str) -> bool:
        return True

    def verdicts(self) -> Mapping[RowKey, RowVerdict]:
        return {}

    def demanded(self, cluster: str) -> Mapping[RowKey, Resources]:
        return {}

    def waiting(self) -> int:
        return 0

    def fenced(self) -> bool:
        return False


class Bench:
    """A monitor, a shard that is a puppet, and a provider."""

    def __init__(self, trace: Trace, provider: type[ModelProvider]) -> None:
        self.monitor = Monitor(trace)
        self.shard = Handle()
        self.shard.book.on_change.append(self._changed)
        slots = [Slot(f"m{number}", OFFER, S.SPECULATIVE) for number in range(4)]
        self.provider = provider("p1", slots, Random(1), trace)
        self.provider.watch = self.monitor
        self.network = Network(Random(2), trace)

    def client(self, epoch: int = 1) -> ProviderClient:
        calls = SimCalls(self.shard.process, "s1", self.provider, self.network, self.monitor)
        return ProviderClient(ProviderSite("p1", "p1:1"), FencingStamps("s1", epoch), calls)

    def order(self, kind: ActionKind, name: str, cluster: str = "c1", **rest: Any) -> None:
        orders = [Order(kind, name, "p1", cluster, **rest)]
        self.monitor.ordered(self.shard, orders, asyncio.get_running_loop().time())

    def _changed(self, before: Machine | None, after: Machine | None) -> None:
        self.monitor.book_changed(self.shard, before, after)


Story = Callable[[Bench], Coroutine[Any, Any, None]]


def simulated(story: Story, provider: type[ModelProvider] = ModelProvider) -> None:
    loop = virtual_loop(1)

    async def main() -> None:
        await story(Bench(Trace(loop), provider))
        await asyncio.sleep(0)

    loop.run(main())


def caught(story: Story, provider: type[ModelProvider] = ModelProvider) -> str:
    with pytest.raises(InvariantError) as error:
        simulated(story, provider)
    return error.value.invariant


async def bind(bench: Bench, client: ProviderClient, name: str, cluster: str) -> None:
    bench.shard.book.take(machine(name, S.IDLE))
    bench.order(A.BOOTSTRAP, name, cluster)
    await client.configure(name, cluster, f"join {cluster} {name}".encode(), {})
    await asyncio.sleep(30)


class BindsTwice(ModelProvider):
    """Takes a Configure for a machine that serves a cluster."""

    def mutate(self, kind: Kind, request: Request) -> Any:
        slot = self.slots[request.machine_id]
        if kind is Kind.CONFIGURE and slot.state is S.CONFIGURED:
            slot.state = WAYS[kind].start
            slot.operations.pop(kind)
        return super().mutate(kind, request)


class NoFences(ModelProvider):
    """Forgets its marks."""

    def mutate(self, kind: Kind, request: Request) -> Any:
        self._marks.clear()
        return super().mutate(kind, request)


async def created(bench: Bench, client: ProviderClient, name: str) -> None:
    bench.shard.book.take(machine(name, S.SPECULATIVE))
    bench.order(A.PROVISION, name)
    await client.create(name)
    await asyncio.sleep(30)


def test_a_machine_in_two_clusters_is_noticed() -> None:
    async def story(bench: Bench) -> None:
        client = bench.client()
        await created(bench, client, "m0")
        await bind(bench, client, "m0", "c1")
        await bind(bench, client, "m0", "c2")

    assert caught(story, BindsTwice) == "S1"


@pytest.mark.parametrize("kind", [A.RECLAIM, A.PREEMPT])
def test_taking_a_machine_before_every_provider_was_heard_is_noticed(kind: ActionKind) -> None:
    async def story(bench: Bench) -> None:
        bench.monitor.excuse("c1", 0.0)
        await bound(bench, "m0", "c1")
        bench.shard.is_partial = True
        bench.order(kind, "m0", priority=5)

    assert caught(story) == "S5"


def test_an_older_process_that_still_acts_is_noticed() -> None:
    async def story(bench: Bench) -> None:
        await created(bench, bench.client(epoch=2), "m0")
        bench.shard.book.take(machine("m0", S.IDLE))
        bench.order(A.DELETE, "m0")
        await bench.client(epoch=1).delete("m0")

    assert caught(story, NoFences) == "S4"


def test_two_calls_for_one_machine_at_once_are_noticed() -> None:
    async def story(bench: Bench) -> None:
        bench.shard.book.take(machine("m0", S.SPECULATIVE))
        bench.order(A.PROVISION, "m0")
        client = bench.client()
        async with asyncio.TaskGroup() as group:
            group.create_task(client.create("m0"))
            group.create_task(client.create("m0"))

    assert caught(story) == "S2"


def test_an_order_from_the_wrong_state_is_noticed() -> None:
    async def story(bench: Bench) -> None:
        bench.shard.book.take(machine("m0", S.IDLE))
        bench.order(A.RECLAIM, "m0")

    assert caught(story) == "S3"


def test_a_call_that_everybody_could_know_to_be_wrong_is_noticed() -> None:
    async def story(bench: Bench) -> None:
        bench.monitor.calm_since = 0.0
        bench.shard.book.take(machine("m0", S.IDLE))
        await asyncio.sleep(100)
        bench.order(A.DELETE, "m0", "")
        with contextlib.suppress(ProviderError):
            await bench.client().delete("m0")

    assert caught(story) == "S3"


def test_a_binding_that_never_was_is_noticed() -> None:
    async def story(bench: Bench) -> None:
        bench.shard.book.take(machine("m0", S.CONFIGURED, "c1"))

    assert caught(story) == "S3"


async def bound(bench: Bench, name: str, cluster: str, **rest: Any) -> None:
    slot = bench.provider.slots[name]
    slot.cluster = cluster
    bench.monitor.changed(bench.provider, slot)
    bench.shard.book.take(machine(name, S.CONFIGURED, cluster, **rest))


def test_a_reclaim_of_a_silent_cluster_is_noticed() -> None:
    async def story(bench: Bench) -> None:
        await bound(bench, "m0", "c2")
        bench.monitor.excuse("c2", 0.0)
        bench.order(A.RECLAIM, "m0", "c2", grace_seconds=600)

    assert caught(story) == "S5"


def test_a_release_of_fixed_capacity_is_noticed() -> None:
    async def story(bench: Bench) -> None:
        bench.shard.book.take(machine("m0", S.IDLE, capacity_type=CapacityType.RESERVED))
        bench.order(A.DELETE, "m0", "")

    assert caught(story) == "S5"


def test_more_reclaims_than_the_cap_are_noticed() -> None:
    async def story(bench: Bench) -> None:
        bench.monitor.excuse("c1", 0.0)
        for name in ("m0", "m1"):
            await bound(bench, name, "c1")
            bench.order(A.RECLAIM, name, grace_seconds=600)
            await asyncio.sleep(9)

    assert caught(story) == "S6"


def test_reclaims_within_the_cap_are_fine() -> None:
    async def story(bench: Bench) -> None:
        bench.monitor.excuse("c1", 0.0)
        for name in ("m0", "m1"):
            await bound(bench, name, "c1")
            bench.order(A.RECLAIM, name, grace_seconds=600)
            await asyncio.sleep(11)

    simulated(story)


@pytest.mark.parametrize(("seconds", "is_noticed"), [(0.1, False), (5, True)])
def test_the_cap_goes_by_the_machines_that_were_there_when_it_was_decided(
    seconds: float, is_noticed: bool
) -> None:
    async def story(bench: Bench) -> None:
        bench.monitor.excuse("c1", 0.0)
        names = [f"m{number}" for number in range(40)]
        for name in names:
            bench.monitor.changed(bench.provider, Slot(name, OFFER, S.CONFIGURED, cluster="c1"))
            bench.shard.book.take(machine(name, S.CONFIGURED, "c1"))
        bench.shard.book.start(names.pop(), S.DRAINING)
        await asyncio.sleep(seconds)
        for name in names[:2]:
            bench.order(A.RECLAIM, name, grace_seconds=600)

    if is_noticed:
        assert caught(story) == "S6"
    else:
        simulated(story)


def test_a_reclaim_at_unchanged_demand_is_noticed() -> None:
    async def story(bench: Bench) -> None:
        await bound(bench, "m0", "c1")
        bench.order(A.RECLAIM, "m0", grace_seconds=600)

    assert caught(story) == "S7"


@pytest.mark.parametrize(
    ("group", "priority", "is_excused"),
    [("gang", 1000, True), ("gang", 10, False), ("", 1000, False)],
)
def test_what_a_gang_leaves_behind_is_excused_when_a_need_before_it_took_a_machine(
    group: str, priority: int, is_excused: bool
) -> None:
    async def story(bench: Bench) -> None:
        await bound(bench, "m0", "c1")
        bench.shard.book.take(machine("m1", S.IDLE))
        bench.shard.book.stamp("m1", stamp("c1", 100, group))
        bench.order(A.BOOTSTRAP, "m1", "c2", stamp=stamp("c2", priority))
        bench.order(A.RECLAIM, "m0", grace_seconds=600)

    if is_excused:
        simulated(story)
    else:
        assert caught(story) == "S7"


def test_a_victim_of_equal_priority_is_noticed() -> None:
    async def story(bench: Bench) -> None:
        await bound(bench, "m0", "c1", stamp=stamp(priority=100))
        bench.order(A.PREEMPT, "m0", grace_seconds=30, priority=100)

    assert caught(story) == "S8"


def test_a_call_no_shard_ordered_is_noticed() -> None:
    async def story(bench: Bench) -> None:
        await bench.client().create("m0")

    assert caught(story) == "S13"


def test_bootstrap_data_of_another_machine_is_noticed() -> None:
    async def story(bench: Bench) -> None:
        bench.shard.book.take(machine("m0", S.IDLE))
        bench.order(A.BOOTSTRAP, "m0", "c1")
        await bench.client().configure("m0", "c1", b"join c1 m1", {})

    assert caught(story) == "S13"


def test_a_life_by_the_rules_is_fine() -> None:
    async def story(bench: Bench) -> None:
        client = bench.client()
        await created(bench, client, "m0")
        await bind(bench, client, "m0", "c1")
        bench.shard.book.take(machine("m0", S.CONFIGURED, "c1", stamp=stamp()))
        bench.monitor.excuse("c1", 0.0)
        bench.order(A.RECLAIM, "m0", grace_seconds=600)
        await client.drain("m0", 600)
        await asyncio.sleep(30)
        assert bench.provider.slots["m0"].state is S.IDLE

    simulated(story)
