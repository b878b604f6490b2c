"""Machines that a person keeps out of every decision, over restarts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Final

from bigfleet.model import Machine
from bigfleet.shard.book import Book
from bigfleet.shard.errors import DataFileError
from bigfleet.shard.ports import Disk, Offload

FILE: Final = "excluded.json"


class Excluded:
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
                "as a JSON array; mend it, or remove it to exclude none"
            ) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __contains__(self, machine_id: object) -> bool:
        return machine_id in self._ids

    def watch(self, book: Book) -> None:
        """Exclude machines again as they are seen."""

        def seen(before: Machine | None, after: Machine | None) -> None:
            if before is None and after is not None and after.id in self._ids:
                book.exclude(after.id, True)

        book.on_change.append(seen)

    async def set(self, book: Book, machine_id: str, excluded: bool) -> None:
        """Keep a machine out, or let it in again; durable when it returns."""
        async with self._writing:
            ids = self._ids | {machine_id} if excluded else self._ids - {machine_id}
            content = json.dumps(sorted(ids)).encode()
            await self._offload(lambda: self._disk.replace(FILE, content))
            self._ids = ids
            if machine_id in book:
                book.exclude(machine_id, excluded)
