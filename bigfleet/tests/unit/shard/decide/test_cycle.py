"""One cycle: what is decided is handed over, and what moved on meanwhile is left alone."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

from bigfleet.decision import ActionKind, Carry, Policy
from bigfleet.model import CapacityType, HostRef, Machine, MachineState, Need, Profile
from bigfleet.model.columns import Demand, Symbols
from bigfleet.model.facts import ClusterFacts
from bigfleet.observe.cycles import CycleRecord
from bigfleet.shard.act.executor import EnqueueResult
from bigfleet.shard.act.rails import AdmittedOrders
from bigfleet.shard.decide.cycle import PHASES, CycleOutcome, DecisionCycle
from bigfleet.shard.decide.watchdog import FIRST_HOLD_SECONDS, DecisionWatchdog
from bigfleet.shard.machines.book import Book
from bigfleet.shard.machines.orders import STARTS_IN, Order
from clocks import HandClock

S = MachineState
T = TypeVar("T")


def machine(name: str, state: MachineState) -> Machine:
    host = None if state is S.SPECULATIVE else HostRef("p", f"h-{name}")
    return Machine(
        name, state, host, "p", "", "", "t", "z", CapacityType.ON_DEMAND, resources={"cpu": 4000}
    )


class World:
    """A cycle around one need of two units; orders are taken when they are fresh."""

    def __init__(self, *machines: Machine) -> None:
        self.clock = HandClock()
        self.book = Book(Symbols(), self.clock)
        for each in machines:
            self.book.take(each)
        self.meanwhile: Callable[[], object] = lambda: None
        self.seen: list[CycleOutcome] = []
        self.records: list[CycleRecord] = []
        self.restamps: list[bytes] = []
        self.needs = [Need("c-1", Profile.of([]), {"cpu": 8000}, {"cpu": 4000})]
        self.cycle = DecisionCycle(
            book=self.book, inputs=self, outputs=self, clock=self.clock,
            offload=self.offload, timer=self.clock.monotonic, cpu=self.clock.monotonic,
            queue=self, hold_back=self.hold_back,
            restamped=self.restamps.append, watchdog=DecisionWatchdog(self.clock, seconds=5.0),
        )  # fmt: skip

    async def once(self) -> CycleRecord:
        """A cycle whose decision is not discarded."""
        record = await self.cycle.once("tick")
        assert record is not None
        return record

    async def offload(self, function: Callable[[], T]) -> T:
        answer = function()
        self.meanwhile()
        return answer

    async def merge(self) -> int:
        return 3

    async def demand(self, carry: Carry) -> Demand:
        return Demand.of(self.needs, {"c-1": ClusterFacts()}, self.book.symbols)

    def policy(self) -> Policy:
        return Policy()

    async def carried_over(self, carry: Carry) -> Carry:
        return carry

    def permit(self, orders: Sequence[Order], policy: Policy, capped: int) -> AdmittedOrders:
        self.capped = capped
        return AdmittedOrders(list(orders))

    def enqueue(self, orders: Sequence[Order], cycle: int) -> EnqueueResult:
        fresh = []
        for order in orders:
            known = self.book.get(order.machine)
            if known is not None and known.state is STARTS_IN[order.kind]:
                fresh.append(order)
        return EnqueueResult(fresh)

    async def hold_back(self, orders: Sequence[tuple[Order, str]], cycle: int) -> None:
        assert not orders

    def show(self, outcome: CycleOutcome) -> int:
        self.seen.append(outcome)
        return int((~outcome.plan.verdicts.satisfied).sum())

    def finished(self, record: CycleRecord) -> None:
        self.records.append(record)

    def states(self) -> dict[str, MachineState]:
        return {each.id: each.state for each in self.book}


async def test_orders_are_under_way_when_the_cycle_ends() -> None:
    world = World(machine("m-1", S.IDLE), machine("m-2", S.SPECULATIVE))
    record = await world.once()
    assert world.states() == {"m-1": S.CONFIGURING, "m-2": S.CREATING}
    assert record.actions == {"Bootstrap": 1, "Provision": 1}
    assert (record.cycle, record.trigger, record.changes) == (1, "tick", 3)
    assert tuple(record.phases) == PHASES
    bound = world.book.get("m-1")
    assert bound is not None
    assert bound.cluster == "c-1"
    assert bound.stamp is not None
    assert bound.stamp.key == world.needs[0].stamp_key


async def test_an_order_carries_all_its_execution_needs() -> None:
    world = World(machine("m-1", S.IDLE))
    await world.cycle.once("tick")
    (order,) = world.seen[0].orders
    assert (order.kind, order.machine, order.provider) == (ActionKind.BOOTSTRAP, "m-1", "p")
    assert order.stamp is not None
    assert order.profile == world.needs[0].profile
    assert "cheapest idle machine" in order.reason


async def test_a_machine_that_moved_on_during_the_decision_is_left_alone() -> None:
    world = World(machine("m-1", S.IDLE))
    world.meanwhile = lambda: world.book.start("m-1", S.DELETING)
    record = await world.once()
    assert record.actions == {}
    assert world.states() == {"m-1": S.DELETING}


async def test_the_next_cycle_counts_what_is_on_its_way() -> None:
    world = World(machine("m-1", S.IDLE), machine("m-2", S.IDLE), machine("m-3", S.IDLE))
    first, second = [await world.once() for _ in range(2)]
    assert first.actions == {"Bootstrap": 2}
    assert second.actions == {}


async def test_listeners_are_told_of_every_order() -> None:
    world = World(machine("m-1", S.IDLE), machine("m-2", S.SPECULATIVE))
    told: list[tuple[MachineState, MachineState]] = []

    def listen(before: Machine | None, after: Machine | None) -> None:
        assert before is not None
        assert after is not None
        told.append((before.state, after.state))

    world.book.on_change.append(listen)
    await world.cycle.once("tick")
    assert sorted(told) == [(S.SPECULATIVE, S.CREATING), (S.IDLE, S.CONFIGURING)]
    assert set(world.book.moving_since()) == {"m-1", "m-2"}


async def test_a_decision_that_takes_too_long_is_discarded_and_the_next_leaves_out_the_heaviest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(*(machine(f"m-{n}", S.IDLE) for n in range(3)))
    carry, decide = world.cycle.carry, world.offload

    async def slow(function: Callable[[], T]) -> T:
        world.cycle.engine.cancel.set()
        return await decide(function)

    world.cycle.offload = slow
    assert await world.cycle.once("tick") is None
    assert world.seen == []
    assert world.cycle.carry == carry
    assert "decision discarded" in caplog.text
    world.cycle.offload = decide
    record = await world.cycle.once("tick")
    assert record is not None
    assert world.seen[0].plan.frozen == {"c-1"}
    assert world.seen[0].orders == []


async def test_a_cluster_that_was_left_out_comes_back_when_its_time_is_over() -> None:
    world = World(*(machine(f"m-{n}", S.IDLE) for n in range(3)))
    world.cycle.watchdog.discard({"c-1": 10_000})
    await world.cycle.once("tick")
    world.cycle.watchdog.discard({"c-1": 1})
    for seconds in (FIRST_HOLD_SECONDS - 1, 2.0 + FIRST_HOLD_SECONDS):
        world.clock.advance(seconds)
        await world.cycle.once("tick")
    assert [seen.plan.frozen for seen in world.seen] == [set(), {"c-1"}, set()]


async def test_a_shard_that_stops_gives_up_its_decision_and_freezes_nothing() -> None:
    world = World(*(machine(f"m-{n}", S.IDLE) for n in range(3)))
    world.cycle.stop()
    assert await world.cycle.once("tick") is None
    assert not world.cycle.watchdog
