"""Takes for a row that is spread over a topology column, such as racks.

A fleet has thousands of racks, so a step must not look at each. Heads (`heads`: one per bucket and
rack) differ within a bucket only by penalty and id, so each bucket keeps its heads in a heap, and a
step compares the tops of the buckets. A head whose rack is full leaves
its heap when it comes to the top and waits with its rack. When the emptiest rack is no longer that
empty, the racks are looked at once, and heads that waited come back.

This serves rows without quotas and spend limit in force; with those, which slots may be created
changes from step to step, and `acquire` looks at every head.
"""

from __future__ import annotations

import numpy as np

from bigfleet.decision.kernels.amounts import covered, domain_of, subtract
from bigfleet.decision.kernels.heads import (
    ABSENT,
    CHAINED,
    CREATE,
    GOOD,
    RESERVED,
    RISKY,
    better,
    earlier,
    set_head,
)
from bigfleet.decision.kernels.layout import (
    I64,
    ClassArrays,
    Facts,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.spread import has_labels
from bigfleet.decision.kernels.supply import use_machine
from bigfleet.jit.decorators import inner

_TIER, _CLASS, _FIRST, _SIZE, _LIVE, _OPEN = range(6)
"""Columns of a bucket: its tier, class, where its heap begins, how many heads are in the heap, how
many with those that wait, and whether its top may be taken in this step."""
_FLOOR, _AT_FLOOR = 0, 1
_NONE = -1


@inner
def over_one_column(ro: Rows, fa: Facts, r: int) -> int:
    """The row's one constraint over a topology column; -1 if it has none, or several."""
    found = _NONE
    for i in range(ro.spread[r], ro.spread[r + 1]):
        if fa.domain_column[ro.spread_key[i]] >= 0:
            if found >= 0:
                return _NONE
            found = i
    return found


@inner
def take_balanced(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, wo: Work,
    sc: Scratch, r: int, over: int, heads: int,
) -> int:  # fmt: skip
    """Take machines until ``sc.left`` is covered or none may be taken; how many."""
    bucket, count = _buckets(ma, cl, ro, fa, wo, sc, r, heads)
    level = np.zeros(2, np.int64)
    sc.clock[0] += 1
    key = ro.spread_key[over]
    for h in range(heads):
        if sc.head_tier[h] != ABSENT:
            sc.mark[domain_of(ma, fa, key, sc.head[h])] = sc.clock[0]
    for d in range(fa.domain_count[key]):
        sc.chain_head[d] = _NONE
    _find_floor(ro, fa, wo, sc, over, level)
    takes = 0
    while not covered(sc.left, ro.width[r]):
        b = _best_bucket(ma, cl, ro, fa, wo, sc, r, over, level, bucket, count)
        if b < 0:
            break
        h = sc.sorted[bucket[b, _FIRST]]
        m = sc.head[h]
        use_machine(ma, cl, ro, fa, wo, r, m, 1)
        sc.takes[takes] = m
        takes += 1
        subtract(sc, bucket[b, _CLASS], sc.left, ro.width[r], 1)
        _replace_top(ma, ids, sc, bucket, b, h, m)
        domain = domain_of(ma, fa, key, m)
        if wo.spread[ro.spread_count[over] + domain] == level[_FLOOR] + 1:
            level[_AT_FLOOR] -= 1
            if level[_AT_FLOOR] == 0:
                _find_floor(ro, fa, wo, sc, over, level)
                _readmit(ro, fa, wo, sc, over, level, bucket)
    return takes


@inner
def _buckets(
    ma: MachineArrays,
    cl: ClassArrays,
    ro: Rows,
    fa: Facts,
    wo: Work,
    sc: Scratch,
    r: int,
    heads: int,
) -> tuple[I64, int]:
    """Heads that can ever be taken as heaps in ``sc.sorted``, one per tier and class."""
    number = np.full((len(cl.price), 3), _NONE, np.int64)
    bucket = np.zeros((min(heads, 3 * len(cl.price)), 6), np.int64)
    count = 0
    for h in range(heads):
        m, c = sc.head[h], sc.head_cls[h]
        tier = GOOD if sc.head_idle[h] else CREATE
        if sc.head_idle[h] and sc.head_at[h] != CHAINED:
            tier = RESERVED
        if not has_labels(ma, ro, fa, r, m) or (tier == CREATE and cl.cooling[c]):
            sc.head_tier[h] = ABSENT
            continue
        sc.head_tier[h] = tier
        if number[c, tier] < 0:
            number[c, tier] = count
            bucket[count, _TIER], bucket[count, _CLASS] = tier, c
            count += 1
        sc.head_end[h] = number[c, tier]
        bucket[number[c, tier], _LIVE] += 1
    for b in range(1, count):
        bucket[b, _FIRST] = bucket[b - 1, _FIRST] + bucket[b - 1, _LIVE]
    for h in range(heads):
        if sc.head_tier[h] != ABSENT:
            b = sc.head_end[h]
            sc.sorted[bucket[b, _FIRST] + bucket[b, _SIZE]] = h
            bucket[b, _SIZE] += 1
    for b in range(count):
        for i in range(bucket[b, _SIZE] // 2 - 1, -1, -1):
            _sift_down(sc, bucket[b, _FIRST], i, bucket[b, _SIZE])
    return bucket, count


@inner
def _find_floor(ro: Rows, fa: Facts, wo: Work, sc: Scratch, over: int, level: I64) -> None:
    """The smallest count among racks the row is in or could reach, and how many have it."""
    base, floor, at_floor = ro.spread_count[over], -1, 0
    for d in range(fa.domain_count[ro.spread_key[over]]):
        count = wo.spread[base + d]
        if count == 0 and sc.mark[d] != sc.clock[0]:
            continue
        if floor < 0 or count < floor:
            floor, at_floor = count, 0
        at_floor += count == floor
    level[_FLOOR], level[_AT_FLOOR] = max(floor, 0), at_floor


@inner
def _full(ro: Rows, wo: Work, over: int, level: I64, domain: int) -> bool:
    count = wo.spread[ro.spread_count[over] + domain]
    return bool(count + 1 - level[_FLOOR] > ro.spread_skew[over])


@inner
def _readmit(
    ro: Rows, fa: Facts, wo: Work, sc: Scratch, over: int, level: I64, bucket: I64
) -> None:
    """Put the heads of racks that are no longer full back into their heaps."""
    for d in range(fa.domain_count[ro.spread_key[over]]):
        if sc.chain_head[d] < 0 or _full(ro, wo, over, level, d):
            continue
        h = sc.chain_head[d]
        while h >= 0:
            after = sc.head_at[h]
            sc.head_at[h] = CHAINED
            b = sc.head_end[h]
            first, size = bucket[b, _FIRST], bucket[b, _SIZE]
            sc.sorted[first + size] = h
            bucket[b, _SIZE] += 1
            _sift_up(sc, first, size)
            h = after
        sc.chain_head[d] = _NONE


@inner
def _best_bucket(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, r: int,
    over: int, level: I64, bucket: I64, count: int,
) -> int:  # fmt: skip
    """The bucket whose top is the row's next machine, -1 for none."""
    cheapest = -1
    for b in range(count):
        bucket[b, _OPEN] = _uncover_top(ma, ro, fa, wo, sc, over, level, bucket, b)
    for i in range(ro.spread[r], ro.spread[r + 1]):
        if i != over:
            _close_skewed(ro, fa, wo, i, bucket, count)
    for b in range(count):
        if bucket[b, _OPEN] and bucket[b, _TIER] == CREATE:
            cost = sc.head_cost[sc.sorted[bucket[b, _FIRST]]]
            if cheapest < 0 or cost < cheapest:
                cheapest = cost
    best, best_tier = -1, 9
    for b in range(count):
        if not bucket[b, _OPEN]:
            continue
        tier = bucket[b, _TIER]
        if tier == GOOD and 0 <= cheapest < cl.loss[bucket[b, _CLASS], ro.interruption[r]]:
            tier = RISKY
        if tier > best_tier:
            continue
        if tier == best_tier:
            h, other = sc.sorted[bucket[b, _FIRST]], sc.sorted[bucket[best, _FIRST]]
            if not better(sc, ro.width[r], h, other):
                continue
        best, best_tier = b, tier
    return best


@inner
def _uncover_top(
    ma: MachineArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, over: int, level: I64,
    bucket: I64, b: int,
) -> bool:  # fmt: skip
    """Let heads of full racks wait until one with room is on top; whether there is one."""
    while bucket[b, _SIZE] > 0:
        h = sc.sorted[bucket[b, _FIRST]]
        domain = domain_of(ma, fa, ro.spread_key[over], sc.head[h])
        if not _full(ro, wo, over, level, domain):
            return True
        sc.head_at[h] = sc.chain_head[domain]
        sc.chain_head[domain] = h
        _drop_top(sc, bucket, b)
    return False


@inner
def _close_skewed(ro: Rows, fa: Facts, wo: Work, i: int, bucket: I64, count: int) -> None:
    """Close buckets whose domain, an attribute of the class, would exceed the smallest."""
    key, base = ro.spread_key[i], ro.spread_count[i]
    floor = -1
    for d in range(fa.domain_count[key]):
        if wo.spread[base + d] > 0 and (floor < 0 or wo.spread[base + d] < floor):
            floor = wo.spread[base + d]
    for b in range(count):
        if bucket[b, _LIVE] > 0:
            if wo.spread[base + fa.domain_of_class[key, bucket[b, _CLASS]]] == 0:
                floor = 0
    for b in range(count):
        have = wo.spread[base + fa.domain_of_class[key, bucket[b, _CLASS]]]
        if have + 1 - max(floor, 0) > ro.spread_skew[i]:
            bucket[b, _OPEN] = 0


@inner
def _replace_top(
    ma: MachineArrays, ids: Identities, sc: Scratch, bucket: I64, b: int, h: int, m: int
) -> None:
    """After the machine on top was taken: the next of its chain stands there, if any."""
    after = sc.chain[m] if bucket[b, _TIER] != RESERVED else -1
    if after < 0:
        bucket[b, _LIVE] -= 1
        _drop_top(sc, bucket, b)
        return
    set_head(ma, ids, sc, h, after)
    _sift_down(sc, bucket[b, _FIRST], 0, bucket[b, _SIZE])


@inner
def _drop_top(sc: Scratch, bucket: I64, b: int) -> None:
    first = bucket[b, _FIRST]
    bucket[b, _SIZE] -= 1
    sc.sorted[first] = sc.sorted[first + bucket[b, _SIZE]]
    _sift_down(sc, first, 0, bucket[b, _SIZE])


@inner
def _sift_down(sc: Scratch, first: int, at: int, size: int) -> None:
    """Let an entry of a heap sink to its place; the earliest head is on top."""
    heap = sc.sorted
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and earlier(sc, heap[first + child + 1], heap[first + child]):
            child += 1
        if not earlier(sc, heap[first + child], heap[first + at]):
            return
        heap[first + at], heap[first + child] = heap[first + child], heap[first + at]
        at = child


@inner
def _sift_up(sc: Scratch, first: int, at: int) -> None:
    """Let an entry of a heap rise to its place."""
    heap = sc.sorted
    while at > 0:
        parent = (at - 1) // 2
        if not earlier(sc, heap[first + at], heap[first + parent]):
            return
        heap[first + at], heap[first + parent] = heap[first + parent], heap[first + at]
        at = parent
