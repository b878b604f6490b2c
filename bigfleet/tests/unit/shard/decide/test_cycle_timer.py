"""When cycles begin: on the tick, or soon after a wake-up, and never too close to each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from bigfleet.shard.decide.cycle_timer import TICK, WAKEUP, CycleTimer
from sim.loop import VirtualLoop, virtual_loop
from sim.ports import SimClock

T = TypeVar("T")
INTERVAL = 10.0
GAP = 0.2


def paced(story: Callable[[CycleTimer, VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    loop = virtual_loop(1)

    async def main() -> T:
        return await story(CycleTimer(SimClock(), INTERVAL, GAP), loop)

    return loop.run(main())


def test_the_first_cycle_is_due_at_once_and_the_next_with_the_tick() -> None:
    async def story(pace: CycleTimer, loop: VirtualLoop) -> None:
        assert await pace.next() == TICK
        assert loop.time() == 0.0
        assert await pace.next() == TICK
        assert loop.time() == INTERVAL

    paced(story)


def test_a_wake_up_brings_the_next_cycle_forward() -> None:
    async def story(pace: CycleTimer, loop: VirtualLoop) -> None:
        await pace.next()
        loop.call_later(3.0, pace.wake)
        assert await pace.next() == WAKEUP
        assert loop.time() == 3.0
        assert await pace.next() == TICK
        assert loop.time() == 3.0 + INTERVAL

    paced(story)


def test_any_number_of_wake_ups_are_one_cycle() -> None:
    async def story(pace: CycleTimer, loop: VirtualLoop) -> None:
        await pace.next()
        for _ in range(100):
            pace.wake()
        assert await pace.next() == WAKEUP
        assert await pace.next() == TICK

    paced(story)


def test_a_storm_of_wake_ups_does_not_spin_the_cycle() -> None:
    async def story(pace: CycleTimer, loop: VirtualLoop) -> int:
        async def storm() -> None:
            for _ in range(1000):
                pace.wake()
                await asyncio.sleep(0.01)

        blowing = asyncio.create_task(storm())
        cycles = 0
        while not blowing.done():
            await pace.next()
            cycles += 1
        return cycles

    assert 45 <= paced(story) <= 52


def test_a_cycle_that_took_longer_than_the_interval_is_followed_by_one_tick() -> None:
    async def story(pace: CycleTimer, loop: VirtualLoop) -> None:
        await pace.next()
        await asyncio.sleep(5 * INTERVAL)
        assert await pace.next() == TICK
        before = loop.time()
        assert await pace.next() == TICK
        assert loop.time() == before + INTERVAL

    paced(story)
