"""Forgetting identities that nothing goes by any more.

Every gang that was ever asked for has a number in the symbols, and finished jobs do not come back
under their old names: over months they would be most of what a shard holds, and sorting their names
most of what a change of rows costs. When unused identities outnumber the used ones, the used ones
are taken into fresh symbols, and machines, rows and the carry get the new numbers. Plans that were
made before keep the old symbols and stay readable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.decision import Carry
from bigfleet.model.columns import Symbols
from bigfleet.observe.process import Offload
from bigfleet.shard.demand.needs_table import NeedsTable
from bigfleet.shard.machines.book import Book

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
UNUSED: Final = 16_384
"""Identities, about five megabytes, that are not worth the trouble."""


@dataclass
class SymbolCollector:
    """Looks at the beginning of a cycle, when no decision reads the symbols."""

    book: Book
    needs: NeedsTable
    offload: Offload
    unused: int = UNUSED
    """How many are let be, or as many as are in use when that is more; with 0 all go at once."""
    _look_at: int = 0

    async def tidied(self, carry: Carry) -> Carry:
        """The carry in the numbers that hold from now on."""
        symbols = self.book.symbols
        if symbols.identity_count <= max(self.unused, self._look_at):
            return carry
        used = self._used()
        self._look_at = len(used) + (max(self.unused, len(used)) if self.unused else 0)
        if symbols.identity_count <= self._look_at:
            return carry
        # What would bring new names waits, as it does for a decision.
        self.book.deciding(True)
        try:
            fresh, numbers = await self.offload(lambda: symbols.keeping(used))
            self._switch(symbols, fresh, numbers)
        finally:
            self.book.deciding(False)
        return replace(
            carry,
            unmet_since=_moved(carry.unmet_since, numbers, fresh.identity_count),
            homeless_since=_moved(carry.homeless_since, numbers, fresh.identity_count),
        )

    def _used(self) -> I64:
        fleet = self.book.snapshot()
        numbers = np.concatenate([fleet.stamp, fleet.leaving_for, self.needs.identities()])
        return np.unique(numbers[numbers >= 0]).astype(np.int64)

    def _switch(self, old: Symbols, fresh: Symbols, numbers: I32) -> None:
        # A machine may have been given an old stamp again in the meantime.
        for identity in self._used().tolist():
            if numbers[identity] < 0:
                numbers[identity] = fresh.identity(old.stamp(identity, 0))
        self.book.renumber(fresh, numbers)
        self.needs.renumber(fresh, numbers)


def _moved(per_identity: I64, numbers: I32, size: int) -> I64:
    out = np.zeros(size, np.int64)
    new = numbers[: len(per_identity)]
    kept = new >= 0
    out[new[kept]] = per_identity[kept]
    return out
