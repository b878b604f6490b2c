"""Host keys that were met for the first time: kept in the notes of their machine.

A host launched by us is pinned before it exists. One that was adopted has no pin; its first contact
is trusted, logged, and from then on it is held to that key.
"""

import asyncio

import msgspec
from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit.backend.hosts import notes_of
from bigfleet_providerkit.backend.state.ledger import Edit, Ledger
from bigfleet_providerkit.errors import StoreUnavailable
from bigfleet_providerkit.substrate import Host


class HostKeyPins:
    """Keeps pins in the background of the connection that found them."""

    def __init__(self, ledger: Ledger, log: FilteringBoundLogger) -> None:
        self._ledger = ledger
        self._log = log
        self._tasks: set[asyncio.Task[None]] = set()

    def keep(self, host: Host, pin: str) -> None:
        """Remember the key of a host."""
        self._log.warning("host key trusted at first contact", host=host.ref, pin=pin)
        task = asyncio.get_running_loop().create_task(self._keep(host, pin))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep(self, host: Host, pin: str) -> None:
        row = self._ledger.notes.get(host.machine_id) or notes_of(host, host.created)
        pinned = msgspec.structs.replace(row, pin=pin)
        async with self._ledger.hold(host.machine_id):
            try:
                await self._ledger.commit(Edit(notes={host.machine_id: pinned}))
            except StoreUnavailable as error:
                self._log.warning("a host key is not kept yet", host=host.ref, error=str(error))
