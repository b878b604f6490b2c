"""What rows are, whatever amounts they ask for: whose they are, what they match, which stamps are
theirs.

From one cycle to the next most demand keeps its rows and changes some amounts, so all this is made
again only when rows come, go, or are folded differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bigfleet.decision.domains import CycleTopology, DomainNumbers
from bigfleet.decision.kernels.layout import I32, I64, U8, Identities
from bigfleet.decision.normalise import NormalRows
from bigfleet.decision.tables import Clusters
from bigfleet.model.columns import Demand

E = TypeVar("E")
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RowIdentity:
    """What rows are, whatever amounts they ask for."""

    position: I32
    parent: I32
    cluster: I32
    priority: I64
    interruption: I32
    reclamation: I32
    blocked: U8
    members: I32
    member: I32
    identities: Identities
    key_rows_at: I32
    key_row: I32
    sub_rows: I64
    """Per row: its first sub-row, -1 where it is not folded."""
    sub_members: I64
    """Per sub-row: the demand row it stands for."""
    profile: I32
    folded: Bools
    """Per row and sub-row: it stands for several demand rows."""


def row_identity_of(demand: Demand, normal: NormalRows, clusters: Clusters) -> RowIdentity:
    size = len(normal)
    folded = normal.need < 0
    sizes = np.diff(normal.members_at)
    of_member = np.repeat(np.arange(size), sizes)
    sub_members = normal.members[folded[of_member]]
    sub_parent = of_member[folded[of_member]]
    sub_rows = np.full(size, -1, np.int64)
    sub_rows[folded] = size + np.concatenate([[0], np.cumsum(sizes[folded])])[:-1]
    identity, table = demand.identity, demand.symbols.identity_column
    mine = identity[np.concatenate([normal.arrival_first, sub_members])]
    members = np.concatenate(
        [normal.members_at, normal.members_at[-1] + np.arange(1, len(sub_members) + 1)]
    ).astype(np.int32)
    member = np.concatenate([identity[normal.members], identity[sub_members]]).astype(np.int32)
    cluster = table("cluster")[mine].astype(np.int32)
    identities, at, key_row = _identities(demand, members, member, size)
    return RowIdentity(
        position=np.concatenate([np.arange(size), sub_parent]).astype(np.int32),
        parent=np.concatenate([np.full(size, -1), sub_parent]).astype(np.int32),
        cluster=cluster,
        priority=table("priority")[mine],
        interruption=table("interruption")[mine].astype(np.int32),
        reclamation=table("reclamation")[mine].astype(np.int32),
        blocked=clusters.blocked[cluster],
        members=members,
        member=member,
        identities=identities,
        key_rows_at=at,
        key_row=key_row,
        sub_rows=sub_rows,
        sub_members=sub_members,
        profile=np.concatenate([normal.profile, demand.profile[sub_members]]),
        folded=np.concatenate([folded, sub_parent < 0]),
    )


def _identities(
    demand: Demand, members: I32, member: I32, size: int
) -> tuple[Identities, I32, I32]:
    """Which rows a stamp is for: by the whole identity, and by the key."""
    symbols = demand.symbols
    table = symbols.identity_column
    exact = np.full(max(1, symbols.identity_count), -1, np.int32)
    first = np.full(max(1, symbols.key_count), -1, np.int32)
    member = member[: members[size]]
    row = np.repeat(np.arange(size, dtype=np.int32), np.diff(members[: size + 1]))
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


@dataclass(frozen=True)
class RowRequirements:
    """What rows' requirements come down to."""

    match: I32
    own_match: I32
    sets: I32
    """Match sets in use; ``match`` and ``own_match`` number these."""
    domain: I32
    spread: tuple[I32, I32, I32]
    masks: tuple[I32, I32]
    numbering: DomainNumbers
    """What the numbers of domains and masks stand for."""


def _special(table: I32) -> Bools:
    """Gangs, spread, and requirements on topology columns."""
    found: Bools = (table[:, 1] >= 0) | (table[:, 2] > 0) | (table[:, 3] > 0)
    return found


def row_requirements_of(topology: CycleTopology, standing: RowIdentity) -> RowRequirements:
    """What rows' requirements come down to; only unusual profiles are looked at one by one."""
    table = topology.profiles[standing.profile]
    new, own = topology.match_sets(standing.profile, standing.cluster)
    sets, number = np.unique(np.concatenate([new, own]), return_inverse=True)
    match: I32 = number.reshape(-1).astype(np.int32)
    special = np.flatnonzero(_special(table))
    size = len(table)
    domain = np.full(size, -1, np.int32)
    # Profiles with nothing special share the first, empty entry.
    kind = np.zeros(size, np.int64)
    pairs = 2 * standing.profile[special].astype(np.int64) + standing.folded[special]
    used, found = np.unique(pairs, return_inverse=True)
    kind[special] = 1 + found.reshape(-1)
    shapes = [topology.shape(pair >> 1) for pair in used.tolist()]
    if len(used):
        domains = np.array([-1, *(topology.domain(s.domain) for s in shapes)], np.int32)
        domain = domains[kind]
    # Same wins over spread, also where it was folded away.
    spreads = [
        [] if pair & 1 else [(topology.domain((key,)), skew) for key, skew in s.spread]
        for pair, s in zip(used.tolist(), shapes, strict=True)
    ]
    spread_at, spread_entries = _ragged([[], *spreads], kind)
    constraints = np.array(spread_entries, np.int32).reshape(-1, 2)
    wanted = [[topology.mask(r) for r in s.by_column] for s in shapes]
    mask_at, masks = _ragged([[], *wanted], kind)
    return RowRequirements(
        match=match[:size],
        own_match=match[size:],
        sets=sets,
        domain=domain,
        spread=(spread_at, constraints[:, 0].copy(), constraints[:, 1].copy()),
        masks=(mask_at, np.array(masks, np.int32)),
        numbering=topology.numbering(),
    )


def _ragged(lists: Sequence[Sequence[E]], inverse: I64) -> tuple[I32, list[E]]:
    """Per row the list of its profile, laid end to end."""
    sizes = np.array([len(entries) for entries in lists], np.int64)[inverse]
    at = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    if at[-1] == 0:
        return at, []
    return at, [entry for i in inverse for entry in lists[i]]
