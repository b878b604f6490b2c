"""The roll-up: all CapacityRequests of a cluster added up by row, as the frame that is sent.

A row is a profile, a group and a size class. Its sum is kept up to date as requests come and go;
its min unit is the greatest of the amounts that occur, of which there are few. A row is encoded
again only when it changed, so the cost of a roll-up follows what changed since the last one.

Of a request little is kept: its row, its amounts, and whether it was told that its roll-up was
taken. Which roll-up first carried it is noted when that roll-up is built.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from bigfleet.model import Need, Resources, Toleration, format_resources
from bigfleet.operator.demand.requests import (
    ACKNOWLEDGED,
    UNMET,
    Amounts,
    CapacityRequest,
    RequestDemand,
    demand_of,
)
from bigfleet.wire.needs import MAX_WHOLE, need_to_proto
from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import provider_pb2 as provider

RowKey = tuple[str, str, str]
Key = tuple[str, str]
"""Namespace and name of a CapacityRequest."""
_MOST: Final = MAX_WHOLE * 1000
_NEEDS_TAG: Final = b"\x1a"
"""Field 3 of the roll-up, a message."""
_ROLLUP_TAG: Final = b"\x12"
"""Field 2 of the operator's frame, a message."""


class RollUpEntry:
    """One CapacityRequest."""

    __slots__ = (
        "amounts", "carried", "is_acknowledged", "key", "names_other_need", "row", "tolerations",
        "uid", "unmet",
    )  # fmt: skip

    def __init__(self, key: Key, uid: str, row: Row, amounts: Amounts) -> None:
        self.key, self.uid, self.row, self.amounts = key, uid, row, amounts
        self.carried = 0
        """Timestamp of the first roll-up that had it; 0 while none did."""
        self.is_acknowledged = False
        self.names_other_need = False
        """Whether its status names a need that its row is not, as after a change of priority."""
        self.unmet = ""
        """The reason for which its status says that it is not met; empty where it does not."""
        self.tolerations: tuple[Toleration, ...] | None = None
        """What it tolerates; None where it does not say."""

    @property
    def is_settled(self) -> bool:
        """Whether its status says all that the acknowledgement of a roll-up has to say."""
        return self.is_acknowledged and not self.names_other_need


@dataclass(slots=True, eq=False)
class Row:
    """One row of demand."""

    demand: RequestDemand
    compares: bool
    total: dict[str, int] = field(default_factory=dict)
    shapes: dict[Amounts, int] = field(default_factory=dict)
    """How many requests ask for exactly this."""
    members: dict[Key, RollUpEntry] = field(default_factory=dict)
    encoded: bytes = b""

    def add(self, entry: RollUpEntry) -> None:
        """One more request."""
        self.members[entry.key] = entry
        self.shapes[entry.amounts] = self.shapes.get(entry.amounts, 0) + 1
        for name, amount in entry.amounts:
            self.total[name] = self.total.get(name, 0) + amount

    def remove(self, entry: RollUpEntry) -> None:
        """One request less."""
        del self.members[entry.key]
        count = self.shapes.pop(entry.amounts) - 1
        if count:
            self.shapes[entry.amounts] = count
        for name, amount in entry.amounts:
            self.total[name] -= amount

    def need(self) -> Need:
        """The row as a value."""
        # In place, because a row may have tens of thousands of different requests.
        largest: dict[str, int] = {}
        for amounts in self.shapes:
            for name, amount in amounts:
                if amount > largest.get(name, 0):
                    largest[name] = amount
        # More than a row can hold is as good as the most it can hold.
        total = {name: min(amount, _MOST) for name, amount in self.total.items()}
        demand = self.demand
        return Need(
            "", demand.profile, total, largest, group=demand.group, size_class=demand.size_class
        )


@dataclass(frozen=True, slots=True)
class Built:
    """One roll-up as bytes of the frame."""

    timestamp: int
    frame: bytes
    rows: int
    left_out: int = 0
    """Rows an older shard could not read."""


class RollUpBuilder:
    """All CapacityRequests of a cluster."""

    def __init__(self, default_arch: str = "", default_os: str = "") -> None:
        self._default_arch, self._default_os = default_arch, default_os
        self._stating: set[Key] = set()
        """Requests that say what they tolerate."""
        self._silent: set[Key] = set()
        """Those that a controller writes and that do not: an earlier release wrote them."""
        self._is_tolerant = False
        """Whether rows have tolerations: all rows change with it, in one roll-up."""
        self._entries: dict[Key, RollUpEntry] = {}
        self._rows: dict[RowKey, Row] = {}
        self._stale: set[RowKey] = set()
        self._fresh: dict[Key, None] = {}
        """Requests no roll-up has carried yet."""
        self._carried: dict[int, list[Key]] = {}
        """By roll-up: requests that were in it first, and are not acknowledged."""
        self._acknowledged = 0
        self.unmet: set[Key] = set()
        """Requests whose status says that they are not met."""
        self.on_change: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    @property
    def acknowledged(self) -> int:
        """How many requests are Acknowledged."""
        return self._acknowledged

    @property
    def without_tolerations(self) -> int:
        """How many requests of controllers do not say what they tolerate."""
        return len(self._silent)

    @property
    def has_comparisons(self) -> bool:
        """Whether any row uses Gt or Lt."""
        return any(row.compares for row in self._rows.values())

    def get(self, key: Key) -> RollUpEntry | None:
        """One request."""
        return self._entries.get(key)

    def row(self, key: RowKey) -> Row | None:
        return self._rows.get(key)

    def fingerprints(self) -> set[str]:
        """The profiles that are asked for."""
        return {fingerprint for fingerprint, _, _ in self._rows}

    def comparing(self) -> Iterator[RollUpEntry]:
        """The requests an older shard cannot be told of."""
        for row in self._rows.values():
            if row.compares:
                yield from row.members.values()

    def put(self, request: CapacityRequest) -> None:
        """A request is there, or changed. A BadRequestError leaves it out."""
        meta = request.metadata
        key = (meta.namespace, meta.name)
        known = self._entries.get(key)
        try:
            demand = demand_of(request)
            if self._is_tolerant:
                demand = demand.with_tolerations()
        except Exception:
            self.remove(key)
            raise
        if (
            known is None
            or known.uid != meta.uid
            or known.amounts != demand.amounts
            or known.row.demand.key != demand.key
        ):
            known = self._replace(key, meta.uid, demand, known)
        known.tolerations = demand.tolerations
        states = demand.tolerations is not None
        (self._stating.add if states else self._stating.discard)(key)
        (self._silent.add if meta.is_controlled and not states else self._silent.discard)(key)
        self._note_status(known, request)

    def remove(self, key: Key) -> None:
        """A request is gone."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        self._leave_row(entry)
        self._stating.discard(key)
        self._silent.discard(key)
        self._fresh.pop(key, None)
        self.unmet.discard(key)
        self._acknowledged -= entry.is_acknowledged
        self._changed()

    def keys(self) -> Iterable[Key]:
        """Every request."""
        return self._entries.keys()

    def build(
        self, cluster_id: str, timestamp: int, overhead: Resources, *, comparisons: bool = True
    ) -> Built:
        """The frame of everything that is asked for now."""
        self._settle_tolerations()
        self._encode()
        if not comparisons:
            # A later roll-up speaks for what earlier ones carried, but not for what it leaves out.
            for entry in self.comparing():
                entry.carried = 0
                self._fresh[entry.key] = None
        rows = [row.encoded for row in self._rows.values() if comparisons or not row.compares]
        head = capacity.ClusterCapacityNeeds(
            cluster_id=cluster_id,
            timestamp_unix_nanos=timestamp,
            tolerations_stated=self._is_tolerant,
            default_arch=self._default_arch,
            default_os=self._default_os,
        )
        if overhead:
            resources = provider.Resources(resources=format_resources(overhead))
            head.node_overhead.CopyFrom(resources)
        body = head.SerializeToString() + b"".join(rows)
        self._carry(timestamp, comparisons=comparisons)
        frame = _ROLLUP_TAG + _varint(len(body)) + body
        return Built(timestamp, frame, len(rows), len(self._rows) - len(rows))

    def begin(self) -> None:
        """A new leadership: who is not acknowledged waits for a roll-up of ours."""
        self._carried.clear()
        for key, entry in self._entries.items():
            if not entry.is_settled:
                self._fresh[key] = None

    def taken(self, timestamp: int) -> list[RollUpEntry]:
        """A roll-up was taken: requests that were in it and still wait to be told."""
        acknowledged: list[RollUpEntry] = []
        for carried in [stamp for stamp in self._carried if stamp <= timestamp]:
            for key in self._carried.pop(carried):
                entry = self._entries.get(key)
                if entry is not None and entry.carried == carried and not entry.is_settled:
                    acknowledged.append(entry)
        return acknowledged

    # -- inside ----------------------------------------------------------------------------------

    def _replace(
        self, key: Key, uid: str, demand: RequestDemand, known: RollUpEntry | None
    ) -> RollUpEntry:
        if known is not None:
            self._leave_row(known)
            self._acknowledged -= known.is_acknowledged
        row = self._rows.get(demand.key)
        if row is None:
            row = self._rows[demand.key] = Row(demand, demand.compares)
        entry = RollUpEntry(key, uid, row, demand.amounts)
        row.add(entry)
        self._entries[key] = entry
        self._fresh[key] = None
        self._stale.add(demand.key)
        self._changed()
        return entry

    def _leave_row(self, entry: RollUpEntry) -> None:
        row = entry.row
        row.remove(entry)
        self._stale.add(row.demand.key)
        if not row.members:
            self._rows.pop(row.demand.key, None)

    def _settle_tolerations(self) -> None:
        """Bring tolerations into all rows, or out of them, when what requests say has changed.

        In one step: two halves of a row may need one machine more than the whole.
        """
        stated = bool(self._stating) and not self._silent
        if self._is_tolerant == stated:
            return
        self._is_tolerant = stated
        for entry in [entry for entry in self._entries.values() if entry.tolerations]:
            demand = replace(entry.row.demand, tolerations=entry.tolerations)
            demand = (
                demand.with_tolerations() if self._is_tolerant else demand.without_tolerations()
            )
            moved = self._replace(entry.key, entry.uid, demand, entry)
            moved.tolerations = entry.tolerations
            moved.is_acknowledged, moved.unmet = entry.is_acknowledged, entry.unmet
            self._acknowledged += entry.is_acknowledged
            # What its status names is the row it was in.
            moved.names_other_need = True

    def _note_status(self, entry: RollUpEntry, request: CapacityRequest) -> None:
        is_acknowledged = request.status.phase == ACKNOWLEDGED
        self._acknowledged += is_acknowledged - entry.is_acknowledged
        entry.is_acknowledged = is_acknowledged
        need, demand = request.status.need, entry.row.demand
        named = None if need is None else (need.profile, need.group)
        entry.names_other_need = named not in (None, (demand.profile.fingerprint, demand.group))
        conditions = request.status.conditions or ()
        reasons = (c.reason or UNMET for c in conditions if c.type == UNMET and c.status == "True")
        entry.unmet = sys.intern(next(reasons, ""))
        (self.unmet.add if entry.unmet else self.unmet.discard)(entry.key)

    def _encode(self) -> None:
        for key in self._stale:
            row = self._rows.get(key)
            if row is not None:
                encoded = need_to_proto(row.need()).SerializeToString()
                row.encoded = _NEEDS_TAG + _varint(len(encoded)) + encoded
        self._stale.clear()

    def _carry(self, timestamp: int, *, comparisons: bool) -> None:
        first: list[Key] = []
        waiting: dict[Key, None] = {}
        for key in self._fresh:
            entry = self._entries[key]
            if entry.row.compares and not comparisons:
                waiting[key] = None
                continue
            entry.carried = timestamp
            if not entry.is_settled:
                first.append(key)
        self._fresh = waiting
        if first:
            self._carried[timestamp] = first

    def _changed(self) -> None:
        for listener in self.on_change:
            listener()


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
