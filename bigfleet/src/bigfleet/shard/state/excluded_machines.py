"""The ids of machines that a person keeps out of every decision, over restarts.

`machines.exclusions` applies them to the book.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bigfleet.observe.process import Offload
from bigfleet.shard.ports import Disk
from bigfleet.shard.state.state_file import StoredIds

FILE: Final = "excluded.json"
_REMEDY: Final = "it lists ids of machines as a JSON array; fix it, or remove it to exclude none"


class ExcludedMachines(StoredIds):
    """The ids, on disk before they take effect."""

    def __init__(self, disk: Disk, offload: Offload) -> None:
        super().__init__(disk, offload, FILE, _REMEDY)

    async def set(
        self, machine_id: str, excluded: bool, written: Callable[[], None] = lambda: None
    ) -> None:
        """Keep a machine out, or let it in again; `written` is called once that is durable."""
        one = {machine_id}
        await self.change(lambda ids: ids | one if excluded else ids - one, written)
