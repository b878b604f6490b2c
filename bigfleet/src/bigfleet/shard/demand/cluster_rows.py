"""One cluster's rows of the needs table, in columns, and what changes when a roll-up replaces them.

A block is replaced, never changed: arrays that were handed out stay as they were. Numbers of the
shard's symbols are given later and apart from the comparison (`intern`), because symbols may only
be written to while no decision is reading them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bigfleet.model import Need, NeedKey, Profile, Stamp
from bigfleet.model.columns import Symbols
from bigfleet.shard.demand.ingest import ClusterStatement, RollUp, RowAmounts

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
UNKNOWN = -1
"""The number of what has not been interned yet."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """What a roll-up did to its cluster's rows."""

    added: tuple[NeedKey, ...] = ()
    changed: tuple[NeedKey, ...] = ()
    """Rows that ask for other amounts than before."""
    removed: tuple[NeedKey, ...] = ()
    shrunk: bool = False
    """Whether a row that stayed asks for less of something."""

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


class Wide(NamedTuple):
    """A block's amounts with one column per resource the symbols know."""

    aggregate: I64
    aggregate_milli: I32
    unit: I64
    unit_milli: I32


@dataclass(slots=True)
class Block:
    """One cluster's accepted rows."""

    cluster: str
    keys: tuple[NeedKey, ...]
    profiles: tuple[Profile, ...]
    aggregate: RowAmounts
    unit: RowAmounts
    arrival: I64
    shrunk_at: I64
    stated: ClusterStatement
    identity: I32
    """Numbers of the symbols; UNKNOWN until `intern` has seen the row."""
    profile: I32
    _wide: Wide | None = field(default=None)

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def first(cls, rollup: RollUp) -> Block:
        """The rows of a cluster that had none."""
        size = len(rollup)
        return cls(
            cluster=rollup.cluster,
            keys=rollup.keys,
            profiles=rollup.profiles,
            aggregate=rollup.aggregate,
            unit=rollup.unit,
            arrival=np.full(size, rollup.timestamp_ns, np.int64),
            shrunk_at=np.zeros(size, np.int64),
            stated=rollup.stated,
            identity=np.full(size, UNKNOWN, np.int32),
            profile=np.full(size, UNKNOWN, np.int32),
        )

    def replaced_by(self, rollup: RollUp, now: int) -> tuple[Block, RowChanges]:
        """The rows after a roll-up that came at `now`, and how they differ from these."""
        source = self._source(rollup)
        kept = source >= 0
        before, after = source[kept], np.flatnonzero(kept)
        changed, shrunk = _compare(self.aggregate, before, rollup.aggregate, after)
        resized, _ = _compare(self.unit, before, rollup.unit, after)
        other = Block.first(rollup)
        other.arrival[after] = self.arrival[before]
        other.shrunk_at[after] = np.where(shrunk, now, self.shrunk_at[before])
        other.identity[after] = self.identity[before]
        other.profile[after] = self.profile[before]
        new, gone = np.flatnonzero(~kept), np.setdiff1d(np.arange(len(self)), before)
        moved = after[changed | resized]
        if not len(new) and not len(gone) and not len(moved):
            other._wide = self._wide
        return other, RowChanges(
            tuple(other.keys[row] for row in new.tolist()),
            tuple(other.keys[row] for row in moved.tolist()),
            tuple(self.keys[row] for row in gone.tolist()),
            bool(shrunk.any()),
        )

    def intern(self, symbols: Symbols, limit: int | None = None) -> int:
        """Give numbers to at most so many rows that have none; how many were given."""
        rows = np.flatnonzero(self.identity == UNKNOWN)[:limit]
        for row in rows.tolist():
            profile, (_, group, size_class) = self.profiles[row], self.keys[row]
            stamp = Stamp(
                self.cluster,
                profile.shape_fingerprint,
                group,
                profile.fingerprint,
                profile.priority,
                profile.interruption,
                profile.reclamation,
                0,
                size_class,
            )
            self.identity[row] = symbols.identity(stamp)
            self.profile[row] = symbols.profile(profile)
        return len(rows)

    def wide(self, symbols: Symbols) -> Wide:
        """The amounts under the symbols' resource numbers, at least as wide as they reach."""
        if self._wide is None:
            self._wide = Wide(*_widen(self.aggregate, symbols), *_widen(self.unit, symbols))
        return self._wide

    def needs(self) -> list[Need]:
        """The rows as values."""
        return [
            Need(
                cluster=self.cluster,
                profile=self.profiles[row],
                aggregate=self.aggregate.of_row(row),
                min_unit=self.unit.of_row(row),
                group=key[1],
                size_class=key[2],
                arrival_ns=int(self.arrival[row]),
                shrunk_at=int(self.shrunk_at[row]),
            )
            for row, key in enumerate(self.keys)
        ]

    def _source(self, rollup: RollUp) -> I64:
        """Per row of the roll-up: which row it was, -1 for a new one."""
        if rollup.keys == self.keys:
            return np.arange(len(self))
        place = {key: row for row, key in enumerate(self.keys)}
        return np.fromiter((place.get(key, -1) for key in rollup.keys), np.int64, len(rollup))


def _compare(before: RowAmounts, old: I64, after: RowAmounts, new: I64) -> tuple[Bools, Bools]:
    """Per pair of rows: whether they differ, and whether the new one is smaller in a resource."""
    names = before.names
    if names != after.names:
        names = tuple(sorted({*before.names, *after.names}))
    was, were = (_under(names, before, cells)[old] for cells in (before.whole, before.milli))
    now, nows = (_under(names, after, cells)[new] for cells in (after.whole, after.milli))
    smaller = (now < was) | ((now == was) & (nows < were))
    differs = (now != was) | (nows != were)
    return differs.any(axis=1), smaller.any(axis=1)


def _under(names: tuple[str, ...], amounts: RowAmounts, cells: I64 | I32) -> I64 | I32:
    """Cells under other names, which hold all of the amounts' own."""
    if names == amounts.names:
        return cells
    out = np.zeros((len(cells), len(names)), np.int64)
    out[:, [names.index(name) for name in amounts.names]] = cells
    return out


def _widen(amounts: RowAmounts, symbols: Symbols) -> tuple[I64, I32]:
    columns = [symbols.resources.of(name) for name in amounts.names]
    shape = (len(amounts.whole), len(symbols.resources))
    whole, milli = np.zeros(shape, np.int64), np.zeros(shape, np.int32)
    whole[:, columns] = amounts.whole
    milli[:, columns] = amounts.milli
    return whole, milli
