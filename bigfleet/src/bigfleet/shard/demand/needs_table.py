"""The needs table: what every cluster asks for, by its last accepted roll-up.

A roll-up replaces its cluster's rows whole; a cluster that falls silent keeps them until a person
says it is gone. A row has arrived with the first roll-up since which it is there without a gap.
For a cycle all rows become one `Demand`: the same object while nothing changed, the same rows with
other amounts while only amounts changed, put together from the clusters' blocks otherwise.

Symbols are written to by `prepare` and `demand` alone, so that a shard can keep roll-ups coming in
while a decision reads the symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from bigfleet.model import Need
from bigfleet.model.columns import Demand, Symbols, renumbered
from bigfleet.model.facts import ClusterFacts
from bigfleet.shard.demand.cluster_rows import Block, RowChanges, Wide
from bigfleet.shard.demand.ingest import ClusterStatement, RollUp

I32 = npt.NDArray[np.int32]
_N = TypeVar("_N", bound=np.integer)
_PREPARED: Final = 2_000
"""Rows interned at one stroke: about 20 ms."""


class NeedsTable:
    """The demand of all clusters. `now` is the shard's clock in Unix nanoseconds."""

    def __init__(self, symbols: Symbols, now: Callable[[], int]) -> None:
        self._symbols = symbols
        self._now = now
        self._blocks: dict[str, Block] = {}
        self._reported: set[str] = set()
        self._unnamed: dict[str, None] = {}
        """Clusters with rows that have no numbers yet, in the order they came."""
        self._resized: set[str] = set()
        """Clusters of which only amounts differ from the last `Demand`."""
        self._demand: Demand | None = None
        """None when rows came or went."""
        self._start: dict[str, int] = {}

    # -- what comes in ---------------------------------------------------------------------------

    def apply(self, cluster: str, rollup: RollUp) -> RowChanges:
        """Replace a cluster's rows; what that changed."""
        self._reported.add(cluster)
        before = self._blocks.get(cluster)
        if before is None:
            after, changes = Block.first(rollup), RowChanges(added=rollup.keys)
        else:
            after, changes = before.replaced_by(rollup, self._now())
        self._blocks[cluster] = after
        if changes.added or changes.removed:
            self._demand = None
        elif changes.changed:
            self._resized.add(cluster)
        if changes.added:
            self._unnamed[cluster] = None
        return changes

    def let_go(self, cluster: str) -> None:
        """A cluster is gone for good: that it asks for nothing is what it last said."""
        self._reported.add(cluster)

    def forget(self, cluster: str) -> None:
        """A cluster is gone for good."""
        self._reported.discard(cluster)
        self._unnamed.pop(cluster, None)
        self._resized.discard(cluster)
        if self._blocks.pop(cluster, None) is not None:
            self._demand = None

    def renumber(self, symbols: Symbols, numbers: I32) -> None:
        """Speak in other symbols from now on."""
        self._symbols = symbols
        for block in self._blocks.values():
            block.identity = renumbered(block.identity, numbers)
        self._demand = None

    # -- what is asked for -----------------------------------------------------------------------

    def __len__(self) -> int:
        return sum(len(block) for block in self._blocks.values())

    def clusters(self) -> list[str]:
        """Clusters whose demand was accepted."""
        return list(self._blocks)

    def accepted(self, cluster: str) -> bool:
        """Whether a roll-up of the cluster was taken since the start."""
        return cluster in self._blocks

    def has_reported(self, cluster: str) -> bool:
        """Whether it is known what the cluster asks for: it said so since the start, or is gone."""
        return cluster in self._reported

    def stated(self, cluster: str) -> ClusterStatement:
        """What the cluster says of itself as a whole."""
        block = self._blocks.get(cluster)
        return ClusterStatement() if block is None else block.stated

    def rows(self, cluster: str) -> list[Need]:
        """A cluster's rows as values."""
        block = self._blocks.get(cluster)
        return [] if block is None else block.needs()

    def shapes(self, cluster: str) -> dict[tuple[str, str], str]:
        """Per (cluster, fingerprint) of its rows: the fingerprint of the shape."""
        block = self._blocks.get(cluster)
        profiles = () if block is None else block.profiles
        return {(cluster, p.fingerprint): p.shape_fingerprint for p in profiles}

    def identities(self) -> I32:
        """The numbers rows are known by; negative where they have none yet."""
        return _joined((block.identity for block in self._blocks.values()), np.int32)

    def prepare(self, rows: int = _PREPARED) -> bool:
        """Give numbers to some rows that came since the last cycle; whether there are more.

        `demand` does what is left. After a restart that is everybody's rows at once, so a cycle
        calls this first, and lets others have the loop in between.
        """
        while self._unnamed and rows > 0:
            cluster = next(iter(self._unnamed))
            block = self._blocks[cluster]
            given = block.intern(self._symbols, rows)
            if given < rows or not (block.identity < 0).any():
                del self._unnamed[cluster]
            rows -= given
        return bool(self._unnamed)

    def demand(self, facts: Mapping[str, ClusterFacts]) -> Demand:
        """All rows as columns."""
        while self.prepare():
            pass
        self._intern_facts(facts)
        known = self._demand
        if known is None:
            self._demand = self._put_together(facts)
        elif self._resized:
            self._demand = self._with_amounts(known, facts)
        elif known.facts is not facts and known.facts != facts:
            self._demand = _keeping_order(known, replace(known, facts=facts))
        self._resized.clear()
        assert self._demand is not None
        return self._demand

    # -- columns ---------------------------------------------------------------------------------

    def _intern_facts(self, facts: Mapping[str, ClusterFacts]) -> None:
        for cluster, fact in facts.items():
            self._symbols.clusters.of(cluster)
            for resource in fact.overhead:
                self._symbols.resources.of(resource)

    def _put_together(self, facts: Mapping[str, ClusterFacts]) -> Demand:
        blocks = list(self._blocks.values())
        wides = [block.wide(self._symbols) for block in blocks]
        sizes = np.cumsum([0, *(len(block) for block in blocks)])
        self._start = dict(zip(self._blocks, sizes.tolist(), strict=False))
        width = len(self._symbols.resources)
        return Demand(
            symbols=self._symbols,
            identity=_joined((block.identity for block in blocks), np.int32),
            profile=_joined((block.profile for block in blocks), np.int32),
            arrival=_joined((block.arrival for block in blocks), np.int64),
            shrunk_at=_joined((block.shrunk_at for block in blocks), np.int64),
            aggregate=_stacked((w.aggregate for w in wides), width, np.int64),
            aggregate_milli=_stacked((w.aggregate_milli for w in wides), width, np.int32),
            unit=_stacked((w.unit for w in wides), width, np.int64),
            unit_milli=_stacked((w.unit_milli for w in wides), width, np.int32),
            facts=facts,
        )

    def _with_amounts(self, known: Demand, facts: Mapping[str, ClusterFacts]) -> Demand:
        """The same rows with the amounts of the clusters that changed."""
        wides = {cluster: self._blocks[cluster].wide(self._symbols) for cluster in self._resized}
        width = len(self._symbols.resources)
        amounts = Wide(
            _copied(known.aggregate, width),
            _copied(known.aggregate_milli, width),
            _copied(known.unit, width),
            _copied(known.unit_milli, width),
        )
        shrunk_at = known.shrunk_at.copy()
        for cluster, wide in wides.items():
            start = self._start[cluster]
            stop = start + len(self._blocks[cluster])
            _write(amounts.aggregate[start:stop], wide.aggregate)
            _write(amounts.aggregate_milli[start:stop], wide.aggregate_milli)
            _write(amounts.unit[start:stop], wide.unit)
            _write(amounts.unit_milli[start:stop], wide.unit_milli)
            shrunk_at[start:stop] = self._blocks[cluster].shrunk_at
        other = known.with_amounts(amounts.aggregate, amounts.aggregate_milli, shrunk_at)
        return _keeping_order(
            known, replace(other, unit=amounts.unit, unit_milli=amounts.unit_milli, facts=facts)
        )


def _keeping_order(known: Demand, other: Demand) -> Demand:
    """The same rows have the same order, which is expensive to compute."""
    if "order" in known.__dict__:
        other.__dict__["order"] = known.order
    return other


def _joined(parts: Iterable[npt.NDArray[_N]], kind: type[_N]) -> npt.NDArray[_N]:
    return np.concatenate([np.empty(0, kind), *parts])


def _stacked(parts: Iterable[npt.NDArray[_N]], width: int, kind: type[_N]) -> npt.NDArray[_N]:
    """Blocks below each other; one that is narrower asks for nothing of what came later."""
    fitting = (part if part.shape[1] == width else _copied(part, width) for part in parts)
    return np.concatenate([np.empty((0, width), kind), *fitting])


def _copied(amounts: npt.NDArray[_N], width: int) -> npt.NDArray[_N]:
    out = np.empty((len(amounts), width), amounts.dtype)
    _write(out, amounts)
    return out


def _write(target: npt.NDArray[_N], amounts: npt.NDArray[_N]) -> None:
    known = amounts.shape[1]
    target[:, :known] = amounts
    target[:, known:] = 0
