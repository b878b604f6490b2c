"""Following a queue of messages about hosts.

A message is done with after its notice was taken. One that cannot be read is logged and done with
as well, since it would come back again and again.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit.substrate import Notice

M = TypeVar("M")
SHOWN = 200


async def queued_notices(
    receive: Callable[[], Awaitable[Sequence[M]]],
    read: Callable[[M], Notice | None],
    done: Callable[[M], Awaitable[object]],
    log: FilteringBoundLogger,
) -> AsyncIterator[Notice]:
    """Notices as they come, until cancelled. `receive` waits for messages; `read` gives None for
    one that says nothing about the end of a host."""
    while True:
        for message in await receive():
            try:
                notice = read(message)
            except (ValueError, LookupError, TypeError) as error:
                log.warning(
                    "message of the queue ignored: it is not an event that this provider knows",
                    error=repr(error), message=str(message)[:SHOWN],
                )  # fmt: skip
                notice = None
            if notice is not None:
                yield notice
            await done(message)
