"""Demand as columns: every need of every cluster, ready for a cycle.

Amounts are exact: whole units and the thousandths above them in two columns, because the sum of
a large row in milli-bytes does not fit 64 bits. The total order of the rows depends on nothing
that changes from one roll-up to the next as long as the same rows are there, so it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bigfleet.model.columns.symbols import Symbols
from bigfleet.model.demand.need import Need
from bigfleet.model.facts import ClusterFacts

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
MILLI = 1000


@dataclass(frozen=True)
class Demand:
    """One row per need. Rows of equal identity must have been added up before."""

    symbols: Symbols
    identity: I32
    profile: I32
    arrival: I64
    shrunk_at: I64
    aggregate: I64
    """[row, resource], whole units ..."""
    aggregate_milli: I32
    """... and thousandths."""
    unit: I64
    unit_milli: I32
    facts: Mapping[str, ClusterFacts] = field(default_factory=dict)
    keys: object = field(default_factory=object)
    """Changes with the rows' identities or arrivals, and only with them."""

    @classmethod
    def of(
        cls, needs: Iterable[Need], facts: Mapping[str, ClusterFacts], symbols: Symbols
    ) -> Demand:
        """Columns of these needs."""
        rows = list(needs)
        names = symbols.resources
        for need in rows:
            for resource in (*need.aggregate, *need.min_unit):
                names.of(resource)
        for fact in facts.values():
            for resource in fact.overhead:
                names.of(resource)
        aggregate = _amounts([need.aggregate for need in rows], symbols)
        unit = _amounts([need.min_unit for need in rows], symbols)
        return cls(
            symbols=symbols,
            identity=np.array([symbols.identity_of_need(n) for n in rows], np.int32),
            profile=np.array([symbols.profile(n.profile) for n in rows], np.int32),
            arrival=np.array([n.arrival_ns for n in rows], np.int64),
            shrunk_at=np.array([n.shrunk_at for n in rows], np.int64),
            aggregate=aggregate[0],
            aggregate_milli=aggregate[1],
            unit=unit[0],
            unit_milli=unit[1],
            facts=facts,
        )

    def __len__(self) -> int:
        return len(self.identity)

    def need(self, row: int) -> Need:
        """One row as a value."""
        symbols = self.symbols
        stamp, names = symbols.stamp(int(self.identity[row]), 0), symbols.resources

        def amounts(whole: I64, milli: I32) -> dict[str, int]:
            return {
                names[d]: MILLI * w + m
                for d, (w, m) in enumerate(zip(whole.tolist(), milli.tolist(), strict=True))
                if w or m
            }

        return Need(
            cluster=stamp.cluster,
            profile=symbols.profiles[int(self.profile[row])],
            aggregate=amounts(self.aggregate[row], self.aggregate_milli[row]),
            min_unit=amounts(self.unit[row], self.unit_milli[row]),
            group=stamp.group,
            size_class=stamp.size_class,
            arrival_ns=int(self.arrival[row]),
            shrunk_at=int(self.shrunk_at[row]),
        )

    def with_needs(self, changed: Mapping[int, Need]) -> Demand:
        """The same rows, some of them asking for something else. Changes the symbols.

        A row that would become equal to another one stays apart, by its size class.
        """
        symbols = self.symbols
        identity, profile = self.identity.copy(), self.profile.copy()
        aggregate, aggregate_milli = self.aggregate.copy(), self.aggregate_milli.copy()
        unit, unit_milli = self.unit.copy(), self.unit_milli.copy()
        width = aggregate.shape[1]
        for row, need in changed.items():
            identity[row] = -1
            number = symbols.identity_of_need(need)
            while (identity == number).any():
                need = replace(need, size_class=need.size_class + "+")
                number = symbols.identity_of_need(need)
            identity[row], profile[row] = number, symbols.profile(need.profile)
            whole, milli = _amounts([need.aggregate, need.min_unit], symbols)
            aggregate[row], unit[row] = whole[:, :width]
            aggregate_milli[row], unit_milli[row] = milli[:, :width]
        return replace(
            self, identity=identity, profile=profile, aggregate=aggregate,
            aggregate_milli=aggregate_milli, unit=unit, unit_milli=unit_milli, keys=object(),
        )  # fmt: skip

    def with_amounts(self, aggregate: I64, aggregate_milli: I32, shrunk_at: I64) -> Demand:
        """The same rows asking for other amounts: their order stays."""
        other = replace(
            self, aggregate=aggregate, aggregate_milli=aggregate_milli, shrunk_at=shrunk_at
        )
        if "order" in self.__dict__:
            other.__dict__["order"] = self.order
        return other

    @cached_property
    def order(self) -> I64:
        """Row numbers in the total order of section 4 of the rules."""
        table, rank = self.symbols.identity_column, self.symbols.texts.rank()
        mine = self.identity
        return np.lexsort(
            (
                rank[table("size")[mine]],
                rank[table("group")[mine]],
                rank[table("fingerprint")[mine]],
                self.symbols.clusters.rank()[table("cluster")[mine]],
                self.arrival,
                -table("reclamation")[mine],
                -table("interruption")[mine],
                -table("priority")[mine],
            )
        )


def _amounts(rows: list[Mapping[str, int]], symbols: Symbols) -> tuple[I64, I32]:
    whole = np.zeros((len(rows), len(symbols.resources)), np.int64)
    milli = np.zeros((len(rows), len(symbols.resources)), np.int32)
    find = symbols.resources.find
    for row, amounts in enumerate(rows):
        for resource, amount in amounts.items():
            column = find(resource)
            whole[row, column], milli[row, column] = divmod(amount, MILLI)
    return whole, milli
