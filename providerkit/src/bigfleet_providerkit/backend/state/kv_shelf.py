"""The key-value shelf of a substrate in memory: its hosts, in the provider's own store."""

import asyncio

from bigfleet_providerkit.errors import Retryable, StoreUnavailable
from bigfleet_providerkit.store.interface import Store


class StoreShelf:
    """Hosts that outlive the process."""

    def __init__(self, store: Store, found: dict[str, bytes]) -> None:
        self._store = store
        self._found = found

    def items(self) -> dict[str, bytes]:
        """What was there when the store was opened."""
        return dict(self._found)

    async def put(self, key: str, value: bytes | None) -> None:
        """Keep or remove one entry; returns when that is durable."""
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: StoreUnavailable | None) -> None:
            if kept.done():
                return
            if error is None:
                kept.set_result(None)
            else:
                kept.set_exception(Retryable(str(error)))

        self._store.submit({("hosts", key.encode()): value}, done)
        await kept
