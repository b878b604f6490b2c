"""The last cycles one by one: what exact quantiles and a look at a stalled shard are made from."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Final

KEPT: Final = 20_000


@dataclass(frozen=True, slots=True)
class CycleRecord:
    """One finished cycle; its fields are those of `/debug/cycles`."""

    cycle: int
    start_unix_nanos: int
    trigger: str
    wall_ns: int
    cpu_ns: int
    phases: Mapping[str, int]
    needs: int
    machines: int
    changes: int
    actions: Mapping[str, int]
    shortfalls: int

    def line(self) -> str:
        """The record as one line of JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))


class CycleRing:
    """The newest records. Written by the event loop, read by the thread that serves HTTP."""

    def __init__(self, kept: int = KEPT) -> None:
        self._records: deque[CycleRecord] = deque(maxlen=kept)

    def add(self, record: CycleRecord) -> None:
        """One more; the oldest goes when there are too many."""
        self._records.append(record)

    def since(self, cycle: int) -> Iterator[CycleRecord]:
        """Records of this cycle and later ones, oldest first."""
        # A copy in one step of the interpreter: a cycle that ends meanwhile is not in the way.
        for record in tuple(self._records):
            if record.cycle >= cycle:
                yield record
