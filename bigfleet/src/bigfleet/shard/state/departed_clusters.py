"""Clusters that a person declared gone for good, over restarts.

After a restart no cluster has reported, and every one keeps what it is bound to. One that is gone
for good does not: what it still had when the process ended goes back like the rest. Should it
report again all the same, it is off the list before its roll-up counts, so that no later restart
takes from it what it uses by then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from bigfleet.observe.process import Offload
from bigfleet.shard.ports import Disk
from bigfleet.shard.state.state_file import StoredIds

FILE: Final = "forgotten.json"
_REMEDY: Final = "it lists ids of clusters as a JSON array; fix it, or remove it to forget none"
_log = logging.getLogger(__name__)


class DepartedClusters(StoredIds):
    """The ids, on disk before they take effect. `load` first."""

    def __init__(self, disk: Disk, offload: Offload) -> None:
        super().__init__(disk, offload, FILE, _REMEDY)

    async def add(self, cluster: str) -> None:
        """A cluster is gone for good; durable when it returns, else OSError."""
        await self.change(lambda ids: ids | {cluster})

    async def mark_present(self, cluster: str) -> None:
        """It is not: durable when it returns, else OSError."""
        if cluster in self:
            await self.change(lambda ids: ids - {cluster})

    async def tidy(self, has_machines: Callable[[str], bool]) -> None:
        """Leave out those that have nothing to give back any more."""
        try:
            await self.change(lambda ids: frozenset(filter(has_machines, ids)))
        except OSError as error:
            _log.warning("forgotten clusters stay in their file: %s", error)
