"""The ids of machines that a person keeps out of every decision, over restarts.

`machines.exclusions` applies them to the book.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Final

from bigfleet.observe.process import Offload
from bigfleet.shard.errors import DataFileError
from bigfleet.shard.ports import Disk

FILE: Final = "excluded.json"


class ExcludedMachines:
    """The ids, on disk before they take effect."""

    def __init__(self, disk: Disk, offload: Offload) -> None:
        self._disk = disk
        self._offload = offload
        self._ids: set[str] = set()
        self._writing = asyncio.Lock()

    def load(self) -> None:
        """What was excluded before the restart. Blocking."""
        content = self._disk.read(FILE)
        if content is None:
            return
        try:
            self._ids = {str(machine_id) for machine_id in json.loads(content)}
        except (ValueError, TypeError) as error:
            raise DataFileError(
                f"{FILE} in the data directory cannot be read ({error}): it lists ids of machines "
                "as a JSON array; fix it, or remove it to exclude none"
            ) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __contains__(self, machine_id: object) -> bool:
        return machine_id in self._ids

    async def set(
        self, machine_id: str, excluded: bool, written: Callable[[], None] = lambda: None
    ) -> None:
        """Keep a machine out, or let it in again. `written` is called once that is durable, before
        the next change is begun.
        """
        async with self._writing:
            ids = self._ids | {machine_id} if excluded else self._ids - {machine_id}
            content = json.dumps(sorted(ids)).encode()
            await self._offload(lambda: self._disk.replace(FILE, content))
            self._ids = ids
            written()
