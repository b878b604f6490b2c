"""Demand -> rows: gangs that fit on one machine fold into plain uniform rows.

A gang whose whole aggregate fits on one matching machine needs no topology. Gangs of one cluster
with the same profile (Same apart) and the same amounts become one row whose unit is one gang.
Whether a gang fits is decided once per kind of gang. A gang that already lives on several machines
stays a gang: folding it would move it for nothing. One that wants a single host never does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bigfleet.decision.carry import FoldKey
from bigfleet.decision.domains import CycleTopology
from bigfleet.decision.interning import Memo, distinct
from bigfleet.decision.kernels.gang_folds import fit_kinds, parts
from bigfleet.decision.kernels.layout import I32, I64, MachineArrays
from bigfleet.decision.kernels.references import refer
from bigfleet.decision.tables import ScaledAmounts
from bigfleet.model.columns import Demand

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class NormalRows:
    """Rows in the total order. ``need`` is the demand row, -1 for folded ones."""

    need: I64
    profile: I32
    arrival_first: I64
    """Per row: a demand row that stands for it (its own, or its first member)."""
    aggregate: I64
    unit: I64
    shrunk_at: I64
    members_at: I64
    members: I64
    """Demand rows of each row; a plain row is its own member."""
    folds: Mapping[FoldKey, tuple[int, int]]

    def __len__(self) -> int:
        return len(self.need)


@dataclass
class Normaliser:
    """Normalises, and keeps the rows of a demand in which nothing folds while they are the same."""

    _order: Memo[tuple[I32, I64]] = field(default_factory=Memo)
    _unit: Memo[I64] = field(default_factory=Memo)

    def normalise(
        self, machines: MachineArrays, demand: Demand, amounts: ScaledAmounts,
        topology: CycleTopology, folds: Mapping[FoldKey, tuple[int, int]], sequence: int,
    ) -> NormalRows:  # fmt: skip
        """Fold what can be folded, and put everything in the total order."""
        gangs = topology.gangs(demand)
        if len(gangs):
            foldable = _foldable(machines, demand, amounts, topology, gangs)
            folded = gangs[foldable]
            if len(folded):
                return _with_folds(demand, amounts, topology, folded, folds, sequence)
        order = demand.order
        profile, members_at = self._order.get(
            (order, demand.profile), (), lambda: _in_order(demand)
        )
        unit = self._unit.get((order, amounts.unit), (), lambda: amounts.unit[order])
        return NormalRows(
            need=order,
            profile=profile,
            arrival_first=order,
            aggregate=amounts.aggregate[order],
            unit=unit,
            shrunk_at=demand.shrunk_at[order],
            members_at=members_at,
            members=order,
            folds={},
        )


def _in_order(demand: Demand) -> tuple[I32, I64]:
    order = demand.order
    return demand.profile[order], np.arange(len(order) + 1, dtype=np.int64)


def _clusters(demand: Demand) -> I32:
    column = demand.symbols.identity_column("cluster")
    return column[demand.identity].astype(np.int32)


def _foldable(
    machines: MachineArrays,
    demand: Demand,
    amounts: ScaledAmounts,
    topology: CycleTopology,
    gangs: I64,
) -> Bools:
    """Per gang: its whole aggregate fits on one machine, and it is not spread over several."""
    clusters = _clusters(demand)[gangs]
    wanted = amounts.aggregate[gangs]
    kinds, kind = _unique([clusters, demand.profile[gangs], *wanted.T])
    fits = np.zeros(len(kinds), np.uint8)
    whole = np.zeros((len(kinds), len(topology.fleet.classes)), np.uint8)
    stated = len(topology.clusters.stated)
    pairs = kinds[:, 1] * stated + topology.clusters.terms[kinds[:, 0]]
    pairs, alive_of = np.unique(pairs, return_inverse=True)
    used = pairs // stated
    alive = np.stack([topology.alive(*divmod(pair, stated)) for pair in pairs.tolist()])
    offers = np.ascontiguousarray(amounts.offers)
    fit_kinds(kinds, offers, amounts.overhead, alive, alive_of.reshape(-1), whole, fits)
    scattered = np.zeros(len(gangs), np.uint8)
    key = demand.symbols.identity_column("key")
    keys = key[demand.identity[gangs]]
    by_key = np.argsort(keys, kind="stable")
    at = np.searchsorted(keys[by_key], np.arange(demand.symbols.key_count + 1))
    own = np.full(demand.symbols.identity_count, -1, np.int64)
    own[demand.identity[gangs]] = np.arange(len(gangs))
    parts(refer(machines), key, own, at, by_key, kind.astype(np.int64), whole, scattered)
    alone = np.array([topology.wants_one_host(int(profile)) for profile in used], np.bool_)
    foldable: Bools = (fits[kind] > 0) & ((scattered == 0) | alone[alive_of.reshape(-1)[kind]])
    return foldable


def _with_folds(
    demand: Demand, amounts: ScaledAmounts, topology: CycleTopology, folded: I64,
    folds: Mapping[FoldKey, tuple[int, int]], sequence: int,
) -> NormalRows:  # fmt: skip
    symbols = demand.symbols
    clusters = _clusters(demand)
    plain_profile = topology.without_same(demand)
    groups, group = _unique([clusters[folded], plain_profile[folded], *amounts.aggregate[folded].T])
    rank, table = symbols.texts.rank(), symbols.identity_column
    mine = demand.identity[folded]
    inside = np.lexsort(
        (
            rank[table("size")[mine]],
            rank[table("fingerprint")[mine]],
            rank[table("group")[mine]],
            demand.arrival[folded],
            group,
        )
    )
    members, group = folded[inside], group[inside]
    first = members[np.searchsorted(group, np.arange(len(groups)))]
    counts = np.bincount(group, minlength=len(groups))
    remembered: dict[FoldKey, tuple[int, int]] = {}
    shrunk = np.zeros(len(groups), np.int64)
    for g in range(len(groups)):
        key = (int(groups[g, 0]), int(groups[g, 1]), tuple(int(v) for v in groups[g, 2:]))
        before, shrunk[g] = folds.get(key, (0, 0))
        if counts[g] < before:
            shrunk[g] = sequence
        remembered[key] = (int(counts[g]), int(shrunk[g]))
    kept = np.setdiff1d(np.arange(len(demand)), folded)
    unit = np.concatenate([amounts.unit[kept], groups[:, 2:]])
    aggregate = np.concatenate([amounts.aggregate[kept], groups[:, 2:] * counts[:, None]])
    need = np.concatenate([kept, np.full(len(groups), -1)])
    stand_in = np.concatenate([kept, first])
    profile = np.concatenate([demand.profile[kept], groups[:, 1].astype(np.int32)])
    shrunk_at = np.concatenate([demand.shrunk_at[kept], shrunk])
    sizes = np.concatenate([np.ones(len(kept), np.int64), counts])
    everyone = np.concatenate([kept, members])
    order = _total_order(demand, need, stand_in, profile, unit)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    members_at = np.concatenate([[0], np.cumsum(sizes[order])])
    pick = np.repeat(starts[order] - members_at[:-1], sizes[order]) + np.arange(members_at[-1])
    return NormalRows(
        need=need[order],
        profile=profile[order],
        arrival_first=stand_in[order],
        aggregate=aggregate[order],
        unit=unit[order],
        shrunk_at=shrunk_at[order],
        members_at=members_at,
        members=everyone[pick],
        folds=remembered,
    )


def _total_order(demand: Demand, need: I64, stand_in: I64, profile: I32, unit: I64) -> I64:
    """The total order with folded rows in it: after a plain row that is equal in all else."""
    symbols = demand.symbols
    rank, table = symbols.texts.rank(), symbols.identity_column
    mine = demand.identity[stand_in]
    folded = need < 0
    prints = np.array([symbols.texts.of(p.fingerprint) for p in symbols.profiles], np.int64)
    rank = symbols.texts.rank()
    empty = rank[symbols.texts.of("")] if symbols.texts.find("") >= 0 else -1
    names = np.argsort(symbols.resources.rank(), kind="stable")
    amounts = [
        np.where(folded, np.where(unit[:, d] > 0, unit[:, d], np.iinfo(np.int64).max), 0)
        for d in reversed(names)
    ]
    return np.lexsort(
        (
            *amounts,
            folded,
            np.where(folded, empty, rank[table("size")[mine]]),
            np.where(folded, empty, rank[table("group")[mine]]),
            rank[prints[profile]],
            symbols.clusters.rank()[table("cluster")[mine]],
            demand.arrival[stand_in],
            -table("reclamation")[mine],
            -table("interruption")[mine],
            -table("priority")[mine],
        )
    )


def _unique(columns: Sequence[npt.NDArray[np.integer]]) -> tuple[I64, I64]:
    """Distinct rows and, per row, which one it is."""
    first, number = distinct(columns)
    return np.column_stack([column[first].astype(np.int64) for column in columns]), number
