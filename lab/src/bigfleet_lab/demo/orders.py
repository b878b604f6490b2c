"""Orders to the simulated parts: JSON objects, one per line, on their standard input.

The end of the input is an order as well: the process that started this one is gone, and so it ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping

Order = Mapping[str, object]
Obey = Callable[[Order], Awaitable[None]]
_log = logging.getLogger(__name__)


async def obey_until_told(obey: Obey) -> None:
    """Carry out orders until a signal comes, or the input ends."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    reading = asyncio.create_task(_read(reader, obey))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((reading, stopping), return_when=asyncio.FIRST_COMPLETED)
    for task in (reading, stopping):
        task.cancel()


async def _read(reader: asyncio.StreamReader, obey: Obey) -> None:
    while line := await reader.readline():
        try:
            order = json.loads(line)
            if not isinstance(order, dict):
                raise ValueError("an order is an object")
            await obey(order)
        except (ValueError, LookupError, TypeError) as error:
            _log.warning("order refused", extra={"order": line[:200], "error": str(error)})


def text(order: Order, key: str) -> str:
    """A text of an order."""
    value = order.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key} is {value!r}: give a text")
    return value


def number(order: Order, key: str) -> float:
    """A number of an order."""
    value = order.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key} is {value!r}: give a number")
    return float(value)
