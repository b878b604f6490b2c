"""Clusters that a person declared gone for good, over restarts.

After a restart no cluster has been heard, and every one keeps what it is bound to. One that was
forgotten does not: what it still had when the process ended goes back like the rest. Should it be
heard again all the same, it is off the list before anything it says is taken, so that no later
restart takes from it what it uses by then.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from typing import Final

from bigfleet.observe.process import Offload
from bigfleet.shard.errors import DataFileError
from bigfleet.shard.ports import Disk

FILE: Final = "forgotten.json"
_log = logging.getLogger(__name__)


class Forgotten:
    """The ids, on disk before they take effect. `load` first."""

    def __init__(self, disk: Disk, offload: Offload) -> None:
        self._disk = disk
        self._offload = offload
        self._ids: frozenset[str] = frozenset()
        self._writing = asyncio.Lock()

    def load(self) -> None:
        """Who was forgotten before the restart. Blocking."""
        content = self._disk.read(FILE)
        if content is None:
            return
        try:
            found = json.loads(content)
            if not isinstance(found, list):
                raise TypeError(f"it holds {type(found).__name__}")
            self._ids = frozenset(map(str, found))
        except (ValueError, TypeError) as error:
            raise DataFileError(
                f"{FILE} in the data directory cannot be read ({error}): it lists ids of clusters "
                "as a JSON array; fix it, or remove it to forget none"
            ) from error

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._ids))

    def __contains__(self, cluster: object) -> bool:
        return cluster in self._ids

    async def add(self, cluster: str) -> None:
        """A cluster is gone for good; durable when it returns, else OSError."""
        await self._change(lambda ids: ids | {cluster})

    async def mark_present(self, cluster: str) -> None:
        """It is not: durable when it returns, else OSError."""
        if cluster in self._ids:
            await self._change(lambda ids: ids - {cluster})

    async def tidy(self, has_machines: Callable[[str], bool]) -> None:
        """Leave out those that have nothing to give back any more."""
        try:
            await self._change(lambda ids: frozenset(filter(has_machines, ids)))
        except OSError as error:
            _log.warning("forgotten clusters stay in their file: %s", error)

    async def _change(self, change: Callable[[frozenset[str]], frozenset[str]]) -> None:
        async with self._writing:
            ids = change(self._ids)
            if ids == self._ids:
                return
            content = json.dumps(sorted(ids)).encode()
            await self._offload(lambda: self._disk.replace(FILE, content))
            self._ids = ids
