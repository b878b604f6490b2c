"""The last cycles one by one: what exact quantiles and a look at a stalled shard are made from."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

import msgspec

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


_FIELDS: Final = tuple(field.name for field in fields(CycleRecord) if field.name != "phases")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Any]).decode


class CycleRing:
    """The newest records. Written by the event loop, read by the thread that serves HTTP.

    Kept as MessagePack without the names of their fields, an eighth of what objects take: it takes
    hours to fill the ring, and memory must not grow for as long.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._records: deque[bytes] = deque(maxlen=kept)
        self._names: dict[tuple[str, ...], int] = {}
        """Names of phases, of which there is one set or two."""

    def add(self, record: CycleRecord) -> None:
        """One more; the oldest goes when there are too many."""
        named = self._names.setdefault(tuple(record.phases), len(self._names))
        rest = [getattr(record, name) for name in _FIELDS]
        self._records.append(_encode([named, [*record.phases.values()], *rest]))

    def since(self, cycle: int) -> Iterator[CycleRecord]:
        """Records of this cycle and later ones, oldest first."""
        found = []
        # A copy in one step of the interpreter: a cycle that ends meanwhile is not in the way.
        for data in reversed(tuple(self._records)):
            record = self._decoded(data)
            if record.cycle < cycle:
                break
            found.append(record)
        yield from reversed(found)

    def _decoded(self, data: bytes) -> CycleRecord:
        named, values, *rest = _decode(data)
        names = next(names for names, number in self._names.items() if number == named)
        phases = dict(zip(names, values, strict=True))
        return CycleRecord(phases=phases, **dict(zip(_FIELDS, rest, strict=True)))
