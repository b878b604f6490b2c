"""Rows, facts and lists of one cycle, arranged as the kernels read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from bigfleet.decision.domains import Topology
from bigfleet.decision.kernels.classify import (
    by_domain,
    gather,
    in_id_order,
    order_idle_buckets,
    starts,
)
from bigfleet.decision.kernels.layout import (
    I32,
    I64,
    U8,
    Classes,
    Facts,
    Holdings,
    Identities,
    Machines,
    Rows,
)
from bigfleet.decision.normalise import Normalised
from bigfleet.decision.policy import Policy
from bigfleet.decision.tables import Amounts
from bigfleet.decision.work import Room
from bigfleet.model import PenaltyBucket
from bigfleet.model.columns import Demand, MachineColumns

E = TypeVar("E")


@dataclass(frozen=True)
class Arranged:
    """Everything the phases read that does not depend on their own progress."""

    rows: Rows
    identities: Identities
    sub_rows: I64
    """Per row: its first sub-row, -1 where it is not folded."""
    key_rows_at: I32
    key_row: I32
    match_sets: I32
    stand_in: I64
    """Per row and sub-row: a demand row with its identity, priority and penalties."""


def arrange(demand: Demand, amounts: Amounts, normal: Normalised, topology: Topology) -> Arranged:
    """Rows in the total order, then one sub-row for each member of a folded row."""
    size = len(normal)
    folded = normal.need < 0
    sizes = np.diff(normal.members_at)
    of_member = np.repeat(np.arange(size), sizes)
    sub_members = normal.members[folded[of_member]]
    sub_parent = of_member[folded[of_member]]
    sub_rows = np.full(size, -1, np.int64)
    sub_rows[folded] = size + np.concatenate([[0], np.cumsum(sizes[folded])])[:-1]
    stand_in = np.concatenate([normal.arrival_first, sub_members])
    profile = np.concatenate([normal.profile, demand.profile[sub_members]])
    aggregate = np.concatenate([normal.aggregate, amounts.aggregate[sub_members]])
    unit = np.concatenate([normal.unit, amounts.unit[sub_members]])
    uniform, width, dims, own = _own_dimensions(aggregate, unit)
    identity = demand.identity
    table = demand.symbols.identity_column
    mine = identity[stand_in]
    cluster = table("cluster")[mine].astype(np.int32)
    by_profile = _by_profile(topology, profile, np.concatenate([folded, sub_parent < 0]))
    spread, spread_key, spread_skew = by_profile.spread
    member = np.concatenate([identity[normal.members], identity[sub_members]])
    members = np.concatenate(
        [normal.members_at, normal.members_at[-1] + np.arange(1, len(sub_members) + 1)]
    )
    pinned = table("interruption")[mine] == PenaltyBucket.PINNED
    kind = _gang_types(by_profile, cluster, uniform, unit, dims, width, amounts, pinned)
    mask_column, mask_value = topology.mask_arrays()
    rows = Rows(
        position=np.concatenate([np.arange(size), sub_parent]).astype(np.int32),
        parent=np.concatenate([np.full(size, -1), sub_parent]).astype(np.int32),
        cluster=cluster,
        priority=table("priority")[mine],
        interruption=table("interruption")[mine].astype(np.int32),
        reclamation=table("reclamation")[mine].astype(np.int32),
        match=by_profile.match,
        aggregate=own,
        unit=np.ascontiguousarray(unit),
        uniform=uniform,
        width=width,
        dims=dims,
        shrunk_at=np.concatenate([normal.shrunk_at, np.zeros(len(sub_members), np.int64)]),
        blocked=_blocked(demand)[cluster],
        domain_key=by_profile.domain,
        members=members.astype(np.int32),
        member=member.astype(np.int32),
        spread=spread,
        spread_key=spread_key,
        spread_skew=spread_skew,
        spread_count=np.zeros(len(spread_key), np.int64),
        masks=by_profile.masks[0],
        mask=by_profile.masks[1],
        mask_column=mask_column,
        mask_value=mask_value,
        gang_type=kind,
    )
    ids, at, key_row = _identities(demand, rows, size)
    return Arranged(rows, ids, sub_rows, at, key_row, by_profile.sets, stand_in)


def _blocked(demand: Demand) -> U8:
    blocked = np.zeros(max(1, len(demand.symbols.clusters)), np.uint8)
    for cluster, facts in demand.facts.items():
        blocked[demand.symbols.clusters.of(cluster)] = facts.blocked
    return blocked


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


@dataclass(frozen=True)
class _ByProfile:
    match: I32
    sets: I32
    """Match sets in use; ``match`` numbers these."""
    domain: I32
    spread: tuple[I32, I32, I32]
    masks: tuple[I32, I32]


def _by_profile(topology: Topology, profile: I32, folded: npt.NDArray[np.bool_]) -> _ByProfile:
    """What a row's requirements come down to; only unusual profiles are looked at one by one."""
    table = topology.profiles[profile]
    sets, match = np.unique(table[:, 0], return_inverse=True)
    special = (table[:, 1] >= 0) | (table[:, 2] > 0) | (table[:, 3] > 0)
    size = len(profile)
    domain = np.full(size, -1, np.int32)
    spread = (np.zeros(size + 1, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32))
    masks = (np.zeros(size + 1, np.int32), np.zeros(0, np.int32))
    if special.any():
        used, inverse = np.unique(2 * profile.astype(np.int64) + folded, return_inverse=True)
        inverse = inverse.reshape(-1)
        shapes = [topology.shape(int(pair) // 2) for pair in used]
        domain = np.array([topology.domain(s.domain) for s in shapes], np.int32)[inverse]
        # Same wins over spread, also where it was folded away.
        spreads = [
            [] if pair % 2 else [(topology.domain((key,)), skew) for key, skew in s.spread]
            for pair, s in zip(used, shapes, strict=True)
        ]
        spread_at, entries = _ragged(spreads, inverse)
        pairs = np.array(entries, np.int32).reshape(-1, 2)
        spread = (spread_at, pairs[:, 0].copy(), pairs[:, 1].copy())
        mask_at, numbers = _ragged(
            [[topology.mask(r) for r in s.by_column] for s in shapes], inverse
        )
        masks = (mask_at, np.array(numbers, np.int32))
    return _ByProfile(match.reshape(-1).astype(np.int32), sets, domain, spread, masks)


def _ragged(lists: Sequence[Sequence[E]], inverse: I64) -> tuple[I32, list[E]]:
    """Per row the list of its profile, laid end to end."""
    sizes = np.array([len(entries) for entries in lists], np.int64)[inverse]
    at = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    if at[-1] == 0:
        return at, []
    return at, [entry for i in inverse for entry in lists[i]]


def _gang_types(
    by: _ByProfile,
    cluster: I32,
    uniform: U8,
    unit: I64,
    dims: I32,
    width: I32,
    amounts: Amounts,
    pinned: npt.NDArray[np.bool_],
) -> I32:
    """Gangs of one type see the same free capacity per domain."""
    kind = np.full(len(cluster), -1, np.int32)
    gangs = np.flatnonzero(by.domain >= 0)
    if len(gangs) == 0:
        return kind
    wanted = np.where(np.arange(dims.shape[1]) < width[gangs, None], dims[gangs], -1)
    columns = [
        by.domain[gangs],
        by.match[gangs],
        pinned[gangs],
        uniform[gangs],
        *unit[gangs].T,
        *wanted.T,
        *amounts.overhead[cluster[gangs]].T,
        *_mask_columns(by.masks, gangs),
    ]
    _, found = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    kind[gangs] = found.reshape(-1)
    return kind


def _mask_columns(masks: tuple[I32, I32], gangs: I64) -> list[I64]:
    at, entries = masks
    deepest = int(np.diff(at)[gangs].max(initial=0))
    columns = []
    for depth in range(deepest):
        index = at[gangs] + depth
        inside = index < at[gangs + 1]
        columns.append(np.where(inside, entries[np.minimum(index, len(entries) - 1)], -1))
    return columns


def _identities(demand: Demand, rows: Rows, size: int) -> tuple[Identities, I32, I32]:
    """Which rows a stamp is for: by the whole identity, and by the key."""
    symbols = demand.symbols
    table = symbols.identity_column
    exact = np.full(max(1, symbols.identity_count), -1, np.int32)
    first = np.full(max(1, symbols.key_count), -1, np.int32)
    top = rows.members[size]
    member = rows.member[:top]
    row = np.repeat(np.arange(size, dtype=np.int32), np.diff(rows.members[: size + 1]))
    exact[member] = row
    key = table("key")[member]
    order = np.lexsort((row, key))
    key, row = key[order], row[order]
    fresh = np.concatenate([[True], (key[1:] != key[:-1]) | (row[1:] != row[:-1])])[: len(key)]
    key, row = key[fresh], row[fresh]
    at = np.searchsorted(key, np.arange(symbols.key_count + 1)).astype(np.int32)
    heads = np.flatnonzero(np.diff(at) > 0)
    first[heads] = row[at[heads]]
    ids = Identities(
        key=table("key"),
        cluster=table("cluster"),
        priority=table("priority"),
        interruption=table("interruption"),
        reclamation=table("reclamation"),
        exact=exact,
        first=first,
    )
    return ids, at, row


def facts_of(
    fleet: MachineColumns,
    demand: Demand,
    arranged: Arranged,
    topology: Topology,
    amounts: Amounts,
    policy: Policy,
    classes: Classes,
    free: I64,
) -> tuple[Facts, dict[int, list[str]]]:
    """Matching, domains, clusters and limits; and the names of domains."""
    table = fleet.classes
    matches = topology.matcher.stacked(arranged.match_sets, table)
    column, of_class, rank, count, names = topology.domain_arrays()
    set_of, class_of = np.nonzero(matches)
    reported = np.zeros(max(1, len(fleet.symbols.clusters)), np.uint8)
    for cluster, known in demand.facts.items():
        reported[fleet.symbols.clusters.of(cluster)] = known.reported
    quota = np.array([policy.quotas.get(pool, -1) for pool in table.pools] or [-1], np.int64)
    waiting = free[1::2]
    price = np.where(classes.elastic > 0, classes.price, 0)
    spend = -1 if policy.spend_limit_micro is None else policy.spend_limit_micro
    return Facts(
        matches=matches,
        match_start=np.searchsorted(set_of, np.arange(len(matches) + 1)).astype(np.int32),
        match_class=class_of.astype(np.int32),
        overhead=amounts.overhead,
        reported=reported,
        domain_column=column,
        domain_of_class=of_class,
        domain_rank=rank,
        domain_count=count,
        key_rows=arranged.key_rows_at,
        key_row=arranged.key_row,
        quota=quota,
        limits=np.array([spend, int((waiting * price).sum()), (quota >= 0).any()], np.int64),
        pool_free=np.bincount(classes.pool, weights=waiting, minlength=len(quota)).astype(np.int64),
    ), names


def list_holdings(
    columns: Machines,
    machines: Any,
    ids: Any,
    scratch: Any,
    identities: Identities,
    keys: int,
    clusters: int,
    exact: I64,
    free: I64,
    gang_columns: Sequence[int],
    domains: int,
    room: Room,
    *,
    limited: bool,
) -> Holdings:
    """Machines by whom they concern; ``loose`` is filled after round one.

    ``machines``, ``ids`` and ``scratch`` are references for the kernels.
    """
    exact_at, bucket_at = starts(exact), starts(free)
    held, bucket, key, idle, coming, leaving = gather(machines, ids, exact_at, bucket_at)
    order_idle_buckets(machines, ids, scratch, bucket, bucket_at)
    owned = np.zeros((len(bucket_at) - 1) // 2, np.uint8)
    owned[columns.cls[idle]] = 1
    key_at, key = _grouped(key, identities.key[columns.stamp[key]], keys)
    idle_at, idle = _grouped(idle, identities.key[columns.stamp[idle]], keys)
    meant = identities.key[columns.leaving_for[coming]]
    coming_at, coming = _grouped(coming, meant, keys)
    leaving_at, leaving = _grouped(leaving, identities.key[columns.stamp[leaving]], keys)
    walked = bool(gang_columns) or limited
    everyone = in_id_order(machines, len(bucket)) if walked else np.zeros(0, np.int32)
    domain_at = np.zeros((max(1, len(columns.columns)), domains + 2), np.int64)
    domain = np.zeros(len(everyone) * len(gang_columns), np.int32)
    for number, column in enumerate(gang_columns):
        by_domain(machines, everyone, column, number * len(everyone), domain_at[column], domain)
    return Holdings(
        exact_at=exact_at,
        exact=held,
        key_at=key_at,
        key=key,
        idle_at=idle_at,
        idle=idle,
        coming_at=coming_at,
        coming=coming,
        leaving_at=leaving_at,
        leaving=leaving,
        loose_at=np.zeros(clusters + 1, np.int64),
        loose=room.take("loose", (len(columns.state),), np.int32, None),
        bucket=bucket,
        bucket_at=bucket_at,
        bucket_end=bucket_at[1:],
        domain_at=domain_at,
        domain=domain,
        free=everyone,
        owned=owned,
    )


def _grouped(machines: I32, group: I64, groups: int) -> tuple[I64, I32]:
    if len(machines) == 0:
        return np.zeros(groups + 1, np.int64), machines
    order = np.argsort(group, kind="stable")
    at = np.searchsorted(group[order], np.arange(groups + 1))
    return at.astype(np.int64), machines[order]
