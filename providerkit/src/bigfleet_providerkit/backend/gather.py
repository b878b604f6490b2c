"""Many steps that wait for a substrate, several at a time.

A host takes a minute to end, so a hundred of them one after the other would keep a pass busy for
the better part of two hours; all of them at once would be a storm.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

T = TypeVar("T")
AT_ONCE = 16


async def gather(
    items: Sequence[T], step: Callable[[T], Coroutine[object, object, None]], most: int = AT_ONCE
) -> None:
    """Take a step for every item, begun in their order. A step sees to its own errors."""
    waiting = iter(items)

    async def one_after_the_other() -> None:
        for item in waiting:
            await step(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(most, len(items))):
            group.create_task(one_after_the_other())
