"""The loop of the simulation behaves as asyncio's, but for the clock and the order."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from sim.loop import (
    DeadlockError,
    SpinError,
    StepLimitError,
    UnhandledError,
    VirtualLoop,
    virtual_loop,
)
from sim.process import Process


def loop_of(seed: int = 1, *, step_limit: int = 0) -> VirtualLoop:
    return virtual_loop(seed, step_limit=step_limit)


def test_time_jumps_to_the_next_timer() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        seen = [loop.time()]
        await asyncio.sleep(3600)
        seen.append(loop.time())
        return seen

    assert loop_of().run(main()) == [0.0, 3600.0]


def test_the_order_of_what_is_ready_is_the_seeds() -> None:
    async def main() -> list[int]:
        order: list[int] = []

        async def note(number: int) -> None:
            order.append(number)

        async with asyncio.TaskGroup() as group:
            for number in range(8):
                group.create_task(note(number))
        return order

    orders = {seed: loop_of(seed).run(main()) for seed in range(4)}
    assert len({tuple(order) for order in orders.values()}) > 1
    assert all(loop_of(seed).run(main()) == order for seed, order in orders.items())


def test_timeouts_events_and_queues_work() -> None:
    async def main() -> tuple[bool, list[int], float]:
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[int] = asyncio.Queue(1)
        event = asyncio.Event()
        got: list[int] = []

        async def produce() -> None:
            for number in range(3):
                await queue.put(number)
                await asyncio.sleep(1)
            event.set()

        async def consume() -> None:
            while len(got) < 3:
                got.append(await queue.get())

        late = False
        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            group.create_task(consume())
            await event.wait()
            try:
                async with asyncio.timeout(5):
                    await asyncio.sleep(10)
            except TimeoutError:
                late = True
        return late, got, loop.time()

    assert loop_of().run(main()) == (True, [0, 1, 2], 8.0)


def test_a_deadlock_says_who_waits_where() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match=r"main: Event\.wait|main: .*main"):
        loop_of().run(main())


def test_a_loop_that_spins_is_noticed() -> None:
    async def main() -> None:
        for _ in itertools.count():
            await asyncio.sleep(0)

    with pytest.raises(StepLimitError):
        loop_of(step_limit=1000).run(main())
    with pytest.raises(SpinError):
        loop_of().run(main())


def test_a_failure_that_no_task_looks_at_fails_the_run() -> None:
    async def main() -> None:
        async def fail() -> None:
            raise ValueError("seven")

        task = asyncio.get_running_loop().create_task(fail())
        await asyncio.sleep(1)
        del task
        await asyncio.sleep(1)

    with pytest.raises(UnhandledError, match="seven"):
        loop_of().run(main())


def test_a_crashed_process_never_runs_again_not_even_to_clean_up() -> None:
    cleaned: list[str] = []

    async def work() -> None:
        try:
            for _ in itertools.count():
                await asyncio.sleep(1)
        finally:
            cleaned.append("up")

    async def main() -> tuple[int, int]:
        process = Process("p")
        process.spawn(work(), "work")
        process.crash_after(5)
        await asyncio.sleep(100)
        unfinished = len(process.unfinished())
        assert not process.alive
        assert not cleaned
        return process.steps, unfinished

    assert loop_of().run(main()) == (5, 1)


def test_a_paused_process_goes_on_where_it_was() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        process = Process("p")
        ticks: list[float] = []

        async def work() -> None:
            for _ in range(3):
                await asyncio.sleep(1)
                ticks.append(loop.time())

        process.spawn(work(), "work")
        await asyncio.sleep(1.5)
        process.pause()
        await asyncio.sleep(10)
        loop.resume(process)
        await asyncio.sleep(10)
        return ticks

    assert loop_of().run(main()) == [1.0, 11.5, 12.5]


def test_what_a_process_starts_is_its_own() -> None:
    async def main() -> list[str]:
        process = Process("p")

        async def child() -> None:
            await asyncio.sleep(1000)

        async def parent() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(child(), name="child")

        process.spawn(parent(), "parent")
        await asyncio.sleep(1)
        return sorted(task.get_name() for task in process.unfinished())

    assert loop_of().run(main()) == ["child", "p/parent"]
