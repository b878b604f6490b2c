"""Rows of one cycle, arranged as the kernels read them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bigfleet.decision.domains import CycleTopology
from bigfleet.decision.interning import Memo, distinct
from bigfleet.decision.kernels.layout import I32, I64, U8, Identities, Rows
from bigfleet.decision.normalise import NormalRows
from bigfleet.decision.row_identity import (
    RowIdentity,
    RowRequirements,
    row_identity_of,
    row_requirements_of,
)
from bigfleet.decision.tables import Clusters, ScaledAmounts
from bigfleet.model import PenaltyBucket
from bigfleet.model.columns import Demand


@dataclass(frozen=True)
class RowColumns:
    """Everything the phases read that does not depend on their own progress."""

    rows: Rows
    identities: Identities
    sub_rows: I64
    key_rows_at: I32
    key_row: I32
    match_sets: I32


@dataclass
class RowArranger:
    """Arranges rows, and keeps what they are while the same rows are there."""

    _standing: Memo[RowIdentity] = field(default_factory=Memo)
    _by_profile: Memo[RowRequirements] = field(default_factory=Memo)

    def arrange(
        self, demand: Demand, amounts: ScaledAmounts, normal: NormalRows, topology: CycleTopology,
        clusters: Clusters,
    ) -> RowColumns:  # fmt: skip
        """Rows in the total order, then one sub-row for each member of a folded row."""
        standing = self._standing_of(demand, normal, clusters)
        by = self._profiles(topology, standing)
        aggregate, unit = normal.aggregate, normal.unit
        shrunk_at, sub = normal.shrunk_at, standing.sub_members
        if len(sub):
            aggregate = np.concatenate([aggregate, amounts.aggregate[sub]])
            unit = np.concatenate([unit, amounts.unit[sub]])
            shrunk_at = np.concatenate([shrunk_at, np.zeros(len(sub), np.int64)])
        uniform, width, dims, own = _own_dimensions(aggregate, unit)
        kind = _gang_types(by, standing, uniform, unit, dims, width, amounts)
        mask_column, mask_value = topology.mask_arrays()
        spread, spread_key, spread_skew = by.spread
        rows = Rows(
            position=standing.position,
            parent=standing.parent,
            cluster=standing.cluster,
            priority=standing.priority,
            interruption=standing.interruption,
            reclamation=standing.reclamation,
            match=by.match,
            own_match=by.own_match,
            aggregate=own,
            unit=np.ascontiguousarray(unit),
            uniform=uniform,
            width=width,
            dims=dims,
            shrunk_at=shrunk_at,
            blocked=standing.blocked,
            domain_key=by.domain,
            members=standing.members,
            member=standing.member,
            spread=spread,
            spread_key=spread_key,
            spread_skew=spread_skew,
            spread_count=np.zeros(len(spread_key), np.int64),
            masks=by.masks[0],
            mask=by.masks[1],
            mask_column=mask_column,
            mask_value=mask_value,
            gang_type=kind,
        )
        return RowColumns(
            rows,
            standing.identities,
            standing.sub_rows,
            standing.key_rows_at,
            standing.key_row,
            by.sets,
        )

    def _standing_of(self, demand: Demand, normal: NormalRows, clusters: Clusters) -> RowIdentity:
        symbols = demand.symbols
        return self._standing.get(
            (demand.identity, normal.members, normal.members_at, normal.profile, clusters),
            (symbols.identity_count, symbols.key_count),
            lambda: row_identity_of(demand, normal, clusters),
        )

    def _profiles(self, topology: CycleTopology, standing: RowIdentity) -> RowRequirements:
        of = (standing, topology.profiles)
        by = self._by_profile.get(of, (), lambda: row_requirements_of(topology, standing))
        topology.resume(by.numbering)
        return by


def _own_dimensions(aggregate: I64, unit: I64) -> tuple[U8, I32, I32, I64]:
    """Uniform rows count whole units; others each demanded resource."""
    has_unit = unit > 0
    times = np.zeros(len(unit), np.int64)
    np.maximum.reduce(
        aggregate // np.maximum(unit, 1), axis=1, where=has_unit, initial=0, out=times
    )
    uniform = (times >= 1) & (aggregate == times[:, None] * unit).all(axis=1)
    wanted = aggregate > 0
    dims = np.argsort(~wanted, axis=1, kind="stable").astype(np.int32)
    width = np.where(uniform, 1, wanted.sum(axis=1)).astype(np.int32)
    own = np.take_along_axis(aggregate, dims.astype(np.int64), axis=1)
    own[uniform] = 0
    own[uniform, 0] = times[uniform]
    return uniform.astype(np.uint8), width, dims, own


def _gang_types(
    by: RowRequirements, standing: RowIdentity, uniform: U8, unit: I64, dims: I32, width: I32,
    amounts: ScaledAmounts,
) -> I32:  # fmt: skip
    """Gangs of one type see the same free capacity per domain."""
    kind = np.full(len(uniform), -1, np.int32)
    gangs = np.flatnonzero(by.domain >= 0)
    if len(gangs) == 0:
        return kind
    wanted = np.where(np.arange(dims.shape[1]) < width[gangs, None], dims[gangs], -1)
    columns = [
        by.domain[gangs],
        by.match[gangs],
        standing.interruption[gangs] == PenaltyBucket.PINNED,
        uniform[gangs],
        *unit[gangs].T,
        *wanted.T,
        *amounts.overhead[standing.cluster[gangs]].T,
        *mask_columns(*by.masks, gangs),
    ]
    kind[gangs] = distinct(columns)[1]
    return kind


def mask_columns(at: I32, entries: I32, rows: I64) -> list[I64]:
    """What these rows ask of topology columns, side by side: equal for rows that ask the same."""
    deepest = int(np.diff(at)[rows].max(initial=0))
    columns = []
    for depth in range(deepest):
        index = at[rows] + depth
        inside = index < at[rows + 1]
        columns.append(np.where(inside, entries[np.minimum(index, len(entries) - 1)], -1))
    return columns
