"""The arrays one cycle works on, by name.

Named tuples of arrays are what compiled code can take and people can read. Everything but ``Work``
is only read during the phases. Rows are needs in the total order (gangs folded); after the rows
come *sub-rows*, one per member of a folded row, used when a member must be served as a gang.

A row's amounts are kept over its own dimensions: a uniform row has one, its count of whole units;
any other row has one per demanded resource (``Rows.dims``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

I8 = npt.NDArray[np.int8]
U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

SPECULATIVE, CREATING, IDLE, CONFIGURING, CONFIGURED, DRAINING, DELETING, FAILED = range(1, 9)
LEAVING, DO_NOT_DISRUPT, ENDING, NOT_READY, FINAL = 1, 2, 8, 16, 128
KEPT_OUT = 4 | 256 | 512
"""Excluded by a person, reserved for another shard, or in back-off: left alone all the same."""
PHANTOM, ENDING_SOON = 32, 64
"""Set by the engine on its own copy of the flags: no Ready node for too long; the end is near."""
UNUSABLE = KEPT_OUT | ENDING | PHANTOM

COVERS_UNIT, OFFERS_ALL = 1, 2
PINNED = 27
(
    GROUP_CLASS, GROUP_OWNED, GROUP_STATE, GROUP_PENALTY, GROUP_BY_ID, GROUP_BY_STAMP, GROUP_END,
    GROUP_VARIED,
) = range(8)  # fmt: skip
"""Columns of ``Holdings.group``: the class; 1 where stamped for a live row; the place of the state;
the reclamation penalty; the first unclaimed machine in ``loose`` and in ``loose_by_stamp``, and the
end of both; 1 where sequence numbers differ."""
(
    PLACE_DOMAIN, PLACE_CLASS, PLACE_HELD_AT, PLACE_CREDITABLE, PLACE_COUNT, PLACE_START,
    PLACE_NEXT,
) = range(7)  # fmt: skip
"""Columns of ``Holdings.place`` (see `leftovers_by_domain`): what its machines have in common, how
many there are, where they begin in ``place_machine``, and another place of the same domain."""
LANE_DOMAIN, LANE_FIRST, LANE_END, LANE_FREE, LANE_AT_FIRST = range(5)
"""Columns of ``Scratch.lane`` (see `domains`): its domain; its first machine that may be free and
its end, in ``lane_machine``; how many of its machines are free now, and were when the cycle began,
those that are stamped for a live row apart."""
MOST_MONEY = (1 << 63) - 1
"""Micro-dollars that are counted: prices that add up to more count as this, and not less."""


class MachineArrays(NamedTuple):
    """Columns of the fleet."""

    state: I8
    cls: I32
    cluster: I32
    stamp: I32
    sequence: I64
    leaving_for: I32
    flags: U16
    idle_since: I64
    pods: I32
    order: I32
    rank: I32
    columns: I32
    """[topology column, machine]"""


class ClassArrays(NamedTuple):
    """Columns over classes of machines."""

    offers: I64
    """[class, resource], scaled like the demand"""
    price: I64
    loss: I64
    """[class, penalty bucket]: expected interruption loss, -1 for infinite"""
    risky: U8
    """can be interrupted"""
    elastic: U8
    cooling: U8
    pool: I32
    hold: I64
    """how long an Idle machine waits before it is released; -1 forever"""
    drain: F64
    """observed drain seconds, -1 before any observation"""


class Identities(NamedTuple):
    """What stamps say; ``exact`` and ``first`` are the live rows a stamp is for, -1 for none."""

    key: I64
    cluster: I64
    priority: I64
    interruption: I64
    reclamation: I64
    exact: I32
    first: I32


class Rows(NamedTuple):
    """Needs in the total order, then sub-rows."""

    position: I32
    parent: I32
    cluster: I32
    priority: I64
    interruption: I32
    reclamation: I32
    match: I32
    """the requirement set that new machines hold"""
    own_match: I32
    """the one that machines of its cluster hold: without defaults of architecture and system"""
    aggregate: I64
    """[row, own dimension]"""
    unit: I64
    """[row, resource]: the min unit"""
    uniform: U8
    width: I32
    """how many own dimensions"""
    dims: I32
    """[row, own dimension] -> resource"""
    shrunk_at: I64
    blocked: U8
    domain_key: I32
    """topology of a gang, -1 for plain rows"""
    members: I32
    """start of the row's identities in ``member``; one more entry than rows"""
    member: I32
    spread: I32
    """start of the row's spread constraints; one more entry than rows"""
    spread_key: I32
    spread_skew: I32
    spread_count: I64
    """start of the constraint's counts per domain in Work.spread"""
    masks: I32
    """start of the row's requirements on topology columns in ``mask``; one more entry than rows"""
    mask: I32
    mask_column: I32
    mask_value: U8
    """[requirement, value + 1]: allowed; slot 0 is 'label absent'"""
    gang_type: I32


class Facts(NamedTuple):
    """What is known of clusters, keys, domains and limits."""

    matches: U8
    """[requirement set, class]: 2 where the class matches but is avoided"""
    match_start: I32
    match_class: I32
    overhead: I64
    """[cluster, resource]"""
    reported: U8
    domain_column: I32
    """per domain key: topology column, or -1 when the domain is an attribute of the class"""
    domain_of_class: I32
    """[domain key, class]"""
    domain_rank: I32
    """[domain key, domain]: place of its name in the order of names"""
    domain_count: I32
    key_rows: I32
    """start of a key's rows in ``key_row``"""
    key_row: I32
    quota: I64
    """per pool, -1 for none"""
    limits: I64
    """[0] spend limit or -1; [1] price of all free elastic Speculative machines together; [2] 1
    where any quota is set"""
    pool_free: I64
    """per pool: free Speculative machines"""
    kind: I32
    """per class: classes of one kind cost and give the same to every row, and share all domains"""


class Holdings(NamedTuple):
    """Machines by whom they concern; each pair is (start per group, machines)."""

    exact_at: I64
    exact: I32
    """counting machines by the row with the same full fingerprint"""
    key_at: I64
    key: I32
    """counting machines by key, where no row has the same fingerprint"""
    idle_at: I64
    idle: I32
    """stamped Idle machines by key"""
    coming_at: I64
    coming: I32
    """leaving or Draining machines by the key they are meant for"""
    leaving_at: I64
    leaving: I32
    """leaving machines that may be kept, by the key of their old need"""
    loose_at: I64
    loose: I32
    """unclaimed counting machines by cluster, after round one; in a cluster by group, then id"""
    loose_by_stamp: I32
    """the same, in a group by the order in which stamps were given"""
    group: I32
    """[group of loose machines, 8]: see ``GROUP_CLASS`` and those after it"""
    group_at: I64
    """start of a cluster's groups in ``group_list``"""
    group_end: I64
    """end of those that still have a machine"""
    group_list: I32
    place: I64
    """[place, 7]: see ``PLACE_DOMAIN`` and those after it"""
    place_at: I64
    """[domain key, cluster]: start of the cluster's places"""
    place_machine: I32
    place_known: U8
    """per domain key: its places are made"""
    bucket: I32
    """free machines by (state, class)"""
    bucket_at: I64
    bucket_end: I64
    domain_at: I64
    """[topology column of a gang, domain]: free machines by domain"""
    domain: I32
    free: I32
    """all free machines in the order of ids"""
    owned: U8
    """per class: has an Idle machine that is stamped for a live row"""


class Work(NamedTuple):
    """What the phases write."""

    claim: I32
    """per machine: the row that claims it, -1 for none"""
    held: U8
    """claimed by a gang that moved away, without counting"""
    taken: I32
    """per free machine: the row that takes it"""
    aside: U8
    kept: U8
    expected: I32
    """per machine on its way: the row that still waits for it"""
    identity: I32
    """per machine: the identity it is stamped with now, -1 for no change"""
    turn: I32
    """per machine: the place of its new stamp among those of this cycle, in the order they were
    given; -1 keeps the old sequence number"""
    left: I64
    """[row, own dimension]: what is still missing; negative is surplus"""
    named: I32
    """per identity: how many claimed machines carry it"""
    next_member: I32
    done: U8
    chosen: U8
    domain: I32
    satisfiable: U8
    best: I32
    """[row, 5]: best domains"""
    best_mille: I32
    best_ok: U8
    served: I32
    """per folded row: members served as gangs"""
    spread: I32
    used: I64
    spend: I64
    position: I64
    """per bucket: everything before it is taken"""
    stale: U8
    """per bucket: what is known of its first machine must be looked up again"""
    front: I32
    """[bucket, 3]: its first machine (-1 for none), that one's place by id, its penalty rank; the
    rank is 0 where the machine is stamped for a live row and must be looked at by itself"""
    changes: I64
    """per class: how often a bucket of it changed, for optimistic concurrency"""
    log: I32
    log_size: I64
    preempt: I32
    """per machine: the row that preempts it"""
    grace: I32
    moved: U8
    """claimed from a lower need of the same cluster"""
    lost: I32
    """per machine: the row it was taken from in phase 2"""
    victims: I32
    freed: I64
    """[row, own dimension]"""
    cancel: I64
    """[0] is set from outside to end the decision early; what it has made is then not used"""
    counters: I64
    """[0] Speculative machines taken; [1] proposals, [2] conflicts, [3] rows served again;
    [4] stamps given"""


class Victims(NamedTuple):
    """Whom phase 2 may take from: excess by class, victims by (class, profile of the holder)."""

    excess_at: I64
    excess: I32
    excess_next: I64
    victim_at: I64
    victim: I32
    victim_next: I64
    bucket_at: I64
    """start of a class's non-empty victim buckets in ``bucket``"""
    bucket: I64
    priority: I64
    """per holder profile"""
    worth: F64
    """[holder profile, 2]: one over the interruption and the reclamation penalty"""
    weights: F64
    budget: I64
    """per cluster: excess that may still be taken, -1 for no cap"""


class Scratch(NamedTuple):
    """Room for one row's turn, used again by the next."""

    give_row: I32
    give_flags: U8
    give: I64
    """[class, own dimension]: what a machine of the class gives to the row at hand"""
    cand: I32
    sorted: I64
    spare: I64
    k1: I64
    k2: I64
    k3: I64
    head: I32
    head_at: I64
    head_end: I64
    head_tier: I8
    head_cost: I64
    head_cls: I32
    head_idle: U8
    head_avoid: U8
    """its class is avoided: it comes after heads of the same cost"""
    head_rank: I64
    head_penalty: I32
    head_x: F64
    head_group: I32
    chain: I32
    """machines of one cluster in one domain"""
    chain_head: I32
    """per domain: the first head that waits there; while lanes are made, the last lane"""
    kind_group: I32
    """[three tiers of each kind]: its group, -1 between turns"""
    tier_group: I64
    """[group, 6]: see `grouped_takes`"""
    level: I64
    lane: I32
    """[lane, 5]: see ``LANE_DOMAIN`` and those after it"""
    lane_at: I64
    """[domain key, bucket]: start of the bucket's lanes"""
    lane_machine: I32
    lane_of: I32
    """[domain key and machine]: the lane that counts it, -1 for none"""
    lane_known: I64
    """per domain key: how much of the log its lanes know, -1 before they are made"""
    takes: I32
    left: I64
    most: I64
    mark: I64
    dom_stamped: I64
    dom_other: I64
    dom_free: I64
    dom_count: I64
    dom_list: I32
    sum_slot: I32
    slot_type: I32
    sums: I64
    """[slot, domain, own dimension]: free capacity by domain, for one type of gang"""
    sum_count: I64
    slot_seen: I64
    slot_domain: I32
    """[slot, number]: domains in which this type of gang finds anything free"""
    slot_size: I64
    """how many of them"""
    yields: I64
    yield_count: I64
    yield_type: I64
    groups: I64
    """[group, 5]: machines that yield alike under one domain key, see `preemptible_sums`"""
    group_head: I32
    """per domain: its first group"""
    clock: I64
