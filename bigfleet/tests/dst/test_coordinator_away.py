"""A coordinator that is away for long: no shard decides anything else than it would have.

Static stability: slow facts are on shards' disks, and nothing a shard does for its clusters waits
for a coordinator. What only a coordinator can do waits, and happens when it is back.
CI has it away for an hour, a change for a part of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from bigfleet.coordinator.state import MovePhase
from bigfleet.model import CapacityType
from bigfleet.shard.machines.orders import Order
from sim.coordinators import CoordinatorHost
from sim.drawing import ProviderPlan
from sim.handle import ShardHandle
from sim.settled import unsettled
from sizes import many
from whole.living import Setting, Whole, cluster, live, offers
from whole.several import HOMES, WANTED, owned_once, starving, until_helped

HOUR = 3_600.0
EVENTFUL = many(change=2, nightly=1, mutant=2, everything=1)
"""By how much an eventful hour is shortened."""
AWAY = HOUR / many(change=3, nightly=1, mutant=3, everything=1)
Decided = tuple[str, str, str, str]
"""Shard, kind of action, machine, cluster."""


def coordinator(whole: Whole) -> CoordinatorHost:
    assert whole.world.coordinator is not None
    return whole.world.coordinator


def recorded(whole: Whole) -> list[Decided]:
    """Every order of every shard from now on."""
    monitor, decided = whole.world.monitor, list[Decided]()
    ordered = monitor.ordered

    def note(shard: ShardHandle, orders: Sequence[Order], now: float) -> None:
        name = shard.process.name.partition(".")[0]
        decided.extend((name, one.kind.title, one.machine, one.cluster) for one in orders)
        ordered(shard, orders, now)

    monitor.ordered = note  # type: ignore[method-assign]
    return decided


def content() -> Setting:
    """Each shard has what its cluster will ever ask for."""
    machines = offers(12, CapacityType.RESERVED)
    late = replace(cluster("c3", 1), joins_after=1_000.0)
    clusters = [cluster("c1", 2), cluster("c2", 2), late]
    return Setting([ProviderPlan("p1", machines)], clusters, homes={**HOMES, "c3": "s2"})


async def an_eventful_hour(whole: Whole) -> None:
    """Demand rises and falls, a cluster comes, a shard dies and comes back."""
    await asyncio.sleep(600.0 / EVENTFUL)
    whole.scale(5, "c1")
    await asyncio.sleep(900.0 / EVENTFUL)
    whole.scale(1, "c2")
    await asyncio.sleep(900.0 / EVENTFUL)
    whole.world.hosts["s1"].life.process.crash()
    await asyncio.sleep(600.0 / EVENTFUL)
    whole.scale(3, "c1")
    await asyncio.sleep((HOUR - 3_000.0) / EVENTFUL)


async def both_met(whole: Whole) -> None:
    for name in ("c1", "c2"):
        await whole.until(lambda name=name: whole.bound(name) == 2, 300.0, f"the start of {name}")  # type: ignore[misc]
    await asyncio.sleep(60.0)


def test_shards_decide_the_same_with_and_without_their_coordinator() -> None:
    async def story(whole: Whole, *, is_away: bool) -> list[Decided]:
        await both_met(whole)
        decided = recorded(whole)
        if is_away:
            coordinator(whole).go_away()
        await an_eventful_hour(whole)
        assert whole.bound("c1") == 3
        assert whole.bound("c2") == 1
        assert whole.bound("c3") == 1
        assert coordinator(whole).process.alive is not is_away
        return decided

    async def with_it(whole: Whole) -> list[Decided]:
        return await story(whole, is_away=False)

    async def without_it(whole: Whole) -> list[Decided]:
        return await story(whole, is_away=True)

    assert sorted(live(content(), without_it)) == sorted(live(content(), with_it))


def test_nothing_is_reclaimed_or_unbound_because_a_coordinator_is_away() -> None:
    async def story(whole: Whole) -> None:
        await both_met(whole)
        coordinator(whole).go_away()
        decided = recorded(whole)
        await asyncio.sleep(AWAY / 2)
        whole.world.hosts["s2"].life.process.crash()
        await asyncio.sleep(AWAY / 2)
        assert {(shard, kind) for shard, kind, _, _ in decided} == {("s2", "Bootstrap")}
        assert [whole.bound(name) for name in ("c1", "c2", "c3")] == [2, 2, 1]
        coordinator(whole).start()
        await asyncio.sleep(120.0)
        # What happened meanwhile is known: a cluster that came, and whose is what.
        assert coordinator(whole).clusters() == {"c1": "s1", "c2": "s2", "c3": "s2"}
        assert unsettled(whole.world) is None

    live(content(), story)


def test_help_from_another_shard_comes_when_the_coordinator_is_back() -> None:
    async def story(whole: Whole) -> None:
        await asyncio.sleep(20.0)
        coordinator(whole).go_away()
        await asyncio.sleep(AWAY)
        assert whole.bound("c2") == WANTED - 2
        assert not whole.world.monitor.counts.get("Reclaim")
        assert not whole.world.monitor.counts.get("Preempt")
        coordinator(whole).start()
        await until_helped(whole, 300.0)
        owned_once(whole)

    live(starving(), story)


def test_a_move_begun_before_the_coordinator_went_ends_when_it_is_back() -> None:
    async def story(whole: Whole) -> None:
        await whole.until(lambda: bool(coordinator(whole).stored_moves()), 300.0, "a move")
        await whole.until(
            lambda: any(whole.world.owners.of(h).transfers for h in whole.world.hosts.values()),
            60.0,
            "a machine on its way",
        )
        coordinator(whole).go_away()
        await asyncio.sleep(AWAY)
        (begun,) = coordinator(whole).stored_moves()
        coordinator(whole).start()
        await until_helped(whole, 300.0)
        ended = {move.id: move.phase for move in coordinator(whole).stored_moves()}
        assert ended[begun.id] is MovePhase.DONE
        owned_once(whole)

    live(starving(), story)
