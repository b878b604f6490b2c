"""Work in no hurry shares the turns of the event loop."""

import asyncio

from bigfleet.shard.operators.replay_throttle import ReplayThrottle


async def test_a_turn_lets_a_few_through_however_many_want_to() -> None:
    turns, done = ReplayThrottle(pieces=3, pause=0.0), 0

    async def work() -> None:
        nonlocal done
        for _ in range(10):
            await turns.next()
            done += 1

    tasks = [asyncio.ensure_future(work()) for _ in range(5)]
    steps = []
    while not all(task.done() for task in tasks):
        before = done
        await asyncio.sleep(0)
        steps.append(done - before)
    assert done == 50
    # One lot may have been let through in the turn before and run in this one.
    assert max(steps) <= 6
    assert sum(steps[:10]) <= 33


async def test_there_is_a_pause_after_each_lot() -> None:
    turns, loop = ReplayThrottle(pieces=2, pause=0.01), asyncio.get_running_loop()
    begun = loop.time()
    for _ in range(6):
        await turns.next()
    assert loop.time() - begun >= 0.015


async def test_those_who_gave_up_take_no_turn() -> None:
    turns = ReplayThrottle(pieces=1, pause=0.0)
    tasks = [asyncio.ensure_future(turns.next()) for _ in range(4)]
    await asyncio.sleep(0)
    for task in tasks[:3]:
        task.cancel()
    async with asyncio.timeout(30):
        await tasks[3]


async def test_nothing_turns_when_no_session_works() -> None:
    turns = ReplayThrottle(pause=0.0)
    await turns.next()
    for _ in range(5):
        await asyncio.sleep(0)
    # An idle event loop must be able to sleep.
    assert not turns._is_turning
