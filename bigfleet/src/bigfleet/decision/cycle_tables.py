"""Lookup tables of one cycle: cluster facts; machine lists by need, key, cluster and bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bigfleet.decision.buffers import BufferPool
from bigfleet.decision.domains import CycleTopology
from bigfleet.decision.interning import Memo
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
    MOST_MONEY,
    U8,
    ClassArrays,
    Facts,
    Holdings,
    Identities,
    MachineArrays,
)
from bigfleet.decision.policy import Policy
from bigfleet.decision.row_columns import RowColumns
from bigfleet.decision.tables import Clusters, ScaledAmounts
from bigfleet.model.columns import MachineColumns


@dataclass
class FactTables:
    """Makes facts, and keeps lists of matching classes while they stay the same."""

    _lists: Memo[tuple[I32, I32]] = field(default_factory=Memo)
    _kinds: Memo[I32] = field(default_factory=Memo)

    def facts_of(
        self, fleet: MachineColumns, arranged: RowColumns, topology: CycleTopology,
        clusters: Clusters, amounts: ScaledAmounts, policy: Policy, classes: ClassArrays, free: I64,
    ) -> tuple[Facts, dict[int, list[str]]]:  # fmt: skip
        """Matching, domains, clusters and limits; and the names of domains."""
        table = fleet.classes
        matches = topology.matcher.stacked(arranged.match_sets, table)
        starts_at, matching = self._lists.get((matches,), (), lambda: _lists(matches))
        column, of_class, rank, count, names = topology.domain_arrays()
        quota = np.array([policy.quotas.get(pool, -1) for pool in table.pools] or [-1], np.int64)
        waiting = free[1::2]
        price = np.where(classes.elastic > 0, classes.price, 0)
        spend = -1 if policy.spend_limit_micro is None else policy.spend_limit_micro
        limits = [spend, _total(waiting, price), int((quota >= 0).any())]
        pool_free = np.bincount(classes.pool, weights=waiting, minlength=len(quota))
        return Facts(
            matches=matches,
            match_start=starts_at,
            match_class=matching,
            overhead=amounts.overhead,
            reported=clusters.reported,
            domain_column=column,
            domain_of_class=of_class,
            domain_rank=rank,
            domain_count=count,
            key_rows=arranged.key_rows_at,
            key_row=arranged.key_row,
            quota=quota,
            limits=np.array(limits, np.int64),
            pool_free=pool_free.astype(np.int64),
            kind=self._kinds.get(
                (classes,), (of_class.tobytes(),), lambda: _kinds(classes, of_class)
            ),
        ), names


def _total(count: I64, price: I64) -> int:
    """What so many machines cost together, or the most that is counted."""
    roughly = float(count.astype(np.float64) @ price)
    return MOST_MONEY if roughly > MOST_MONEY // 2 else int((count * price).sum())


def _kinds(classes: ClassArrays, of_class: I32) -> I32:
    """Classes that no row can tell apart, but by what they match and by their penalties and ids."""
    c = classes
    same = (c.price, c.risky, c.elastic, c.cooling, c.pool, *c.loss.T, *c.offers.T, *of_class)
    known: dict[bytes, int] = {}
    rows = np.column_stack(same).astype(np.int64)
    return np.array([known.setdefault(row.tobytes(), len(known)) for row in rows], np.int32)


def _lists(matches: U8) -> tuple[I32, I32]:
    """Per match set: where its classes start, and the classes."""
    set_of, class_of = np.nonzero(matches)
    at = np.searchsorted(set_of, np.arange(len(matches) + 1))
    return at.astype(np.int32), class_of.astype(np.int32)


def list_holdings(
    columns: MachineArrays, machines: Any, ids: Any, scratch: Any, identities: Identities,
    keys: int, clusters: int, exact: I64, free: I64, gang_columns: Sequence[int], domain_keys: int,
    domains: int, buffers: BufferPool, *, limited: bool,
) -> Holdings:  # fmt: skip
    """Machines by whom they concern; ``loose`` is filled after round one.

    ``machines``, ``ids`` and ``scratch`` are references for the kernels; ``domain_keys`` is 0 where
    there is no gang.
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
    placed = domain_keys * len(columns.state)
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
        loose=buffers.array("loose", (len(columns.state),), np.int32, None),
        loose_by_stamp=buffers.array("loose_by_stamp", (len(columns.state),), np.int32, None),
        group=buffers.array("loose_group", (len(columns.state), 8), np.int32, None),
        group_at=np.zeros(clusters + 1, np.int64),
        group_end=np.zeros(clusters, np.int64),
        group_list=buffers.array("loose_group_list", (len(columns.state),), np.int32, None),
        place=buffers.array("place", (placed, 7), np.int64, None),
        place_at=np.zeros((domain_keys, clusters + 1), np.int64),
        place_machine=buffers.array("place_machine", (placed,), np.int32, None),
        place_known=np.zeros(domain_keys, np.uint8),
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
