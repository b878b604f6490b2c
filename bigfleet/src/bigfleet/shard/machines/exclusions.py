"""Machines that a person keeps out of every decision: the file of ids, applied to the book."""

from __future__ import annotations

from collections.abc import Iterator

from bigfleet.model import Machine
from bigfleet.shard.machines.book import Book
from bigfleet.shard.state.excluded_machines import ExcludedMachines


class Exclusions:
    """Excludes machines as they are first seen, and when a person says so."""

    def __init__(self, book: Book, ids: ExcludedMachines) -> None:
        self._book = book
        self._ids = ids
        book.on_change.append(self._seen)

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __contains__(self, machine_id: object) -> bool:
        return machine_id in self._ids

    async def set(self, machine_id: str, excluded: bool) -> None:
        """Keep a machine out, or let it in again; durable when it returns."""

        def apply() -> None:
            if machine_id in self._book:
                self._book.exclude(machine_id, excluded)

        await self._ids.set(machine_id, excluded, apply)

    def _seen(self, before: Machine | None, after: Machine | None) -> None:
        if before is None and after is not None and after.id in self._ids:
            self._book.exclude(after.id, True)
