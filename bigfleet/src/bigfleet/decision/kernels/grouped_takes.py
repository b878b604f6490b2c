"""Takes of one row, group by group: heads that differ in penalty and id only form a group.

A fleet has thousands of classes and racks, so a step must not look at each. Classes that nothing
present can tell apart are one kind (`Facts.kind`). Heads (`heads`: one per bucket, or one per
bucket and rack) of one kind and tier cost the same and give the same, so each group keeps its heads
in a heap, and a step compares the tops of the groups.

Under a spread over a topology column, such as racks, a head whose rack is full leaves its heap when
it comes to the top and waits with its rack. When the emptiest rack is no longer that empty, the
racks are looked at once, and heads that waited come back. That serves one such constraint without
quotas and spend limit in force; `acquire` looks at every head for the others.
"""

from __future__ import annotations

from bigfleet.decision.kernels.amounts import compare_cost, covered, domain_of, rough_cost, subtract
from bigfleet.decision.kernels.heads import (
    ABSENT,
    CHAINED,
    CLOSE,
    CREATE,
    GOOD,
    NEXT_RESERVED,
    RESERVED,
    RISKY,
    advance,
    better,
    earlier,
)
from bigfleet.decision.kernels.layout import (
    I64,
    ClassArrays,
    Facts,
    Holdings,
    Identities,
    MachineArrays,
    Rows,
    Scratch,
    Work,
)
from bigfleet.decision.kernels.spread import has_labels
from bigfleet.decision.kernels.supply import may_create, use_machine
from bigfleet.jit.decorators import inner

_TIER, _CLASS, _FIRST, _SIZE, _LIVE, _OPEN = range(6)
"""Columns of a group: its tier, one of its classes, where its heap begins, how many heads are in
the heap, how many with those that wait, and the tier of its top in this step (-1: closed)."""
_FLOOR, _AT_FLOOR = 0, 1
_NONE = -1


@inner
def take_grouped(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, over: int, heads: int, planned: bool,
) -> int:  # fmt: skip
    """Take machines until ``sc.left`` is covered or none may be taken; how many.

    ``over`` is the row's constraint over a topology column, -1 where it has none.
    """
    group, level, width = sc.tier_group, sc.level, ro.width[r]
    count = _make_groups(ma, cl, ro, fa, sc, r, heads)
    if over >= 0:
        _mark_reachable(ma, ro, fa, sc, over, heads)
        _find_floor(ro, fa, wo, sc, over, level)
    limited = fa.limits[0] >= 0 or fa.limits[2] > 0
    plain = width == 1 and ro.spread[r] == ro.spread[r + 1] and not limited
    takes = 0
    while not covered(sc.left, width):
        b = _best_group(ma, cl, ro, fa, wo, sc, r, over, level, group, count, limited)
        if b < 0:
            break
        if plain:
            before = takes
            takes = _take_run(ma, cl, ids, ro, fa, ho, wo, sc, r, group, count, b, takes, planned)
            if takes > before:
                continue
        m = _take_top(ma, cl, ids, ro, fa, ho, wo, sc, r, group, b, takes, planned)
        takes += 1
        if over < 0:
            continue
        domain = domain_of(ma, fa, ro.spread_key[over], m)
        if wo.spread[ro.spread_count[over] + domain] == level[_FLOOR] + 1:
            level[_AT_FLOOR] -= 1
            if level[_AT_FLOOR] == 0:
                _find_floor(ro, fa, wo, sc, over, level)
                _readmit(ro, fa, wo, sc, over, level, group)
    return takes


@inner
def _take_top(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, group: I64, b: int, takes: int, planned: bool,
) -> int:  # fmt: skip
    """Take the head on top of a group; what follows it stands there, if anything does."""
    h = sc.sorted[group[b, _FIRST]]
    m = sc.head[h]
    use_machine(ma, cl, ro, fa, wo, r, m, 1)
    sc.takes[takes] = m
    subtract(sc, ma.cls[m], sc.left, ro.width[r], 1)
    advance(ma, ids, ro, fa, ho, wo, sc, r, h, planned)
    if sc.head[h] < 0:
        group[b, _LIVE] -= 1
        _drop_top(sc, group, b)
    else:
        _sift_down(sc, group[b, _FIRST], 0, group[b, _SIZE])
    return m


@inner
def _take_run(
    ma: MachineArrays, cl: ClassArrays, ids: Identities, ro: Rows, fa: Facts, ho: Holdings,
    wo: Work, sc: Scratch, r: int, group: I64, count: int, best: int, takes: int, planned: bool,
) -> int:  # fmt: skip
    """Take on from the groups that cost the same as the best, while nothing else can win.

    As long as no machine would cover all that is left of a uniform row, costs per useful unit
    keep their order whatever is left; only ids decide among the groups that tie.
    """
    if group[best, _TIER] == RESERVED:
        return takes
    largest = 0
    for b in range(count):
        if group[b, _SIZE] > 0:
            largest = max(largest, sc.give[group[b, _CLASS], 0])
    if sc.left[0] < largest:
        return takes
    top, c, ties = sc.sorted[group[best, _FIRST]], group[best, _CLASS], 0
    for b in range(count):
        if group[b, _OPEN] != group[best, _OPEN]:
            continue
        h, other = sc.sorted[group[b, _FIRST]], group[b, _CLASS]
        if compare_cost(
            sc.head_cost[h], sc.give[other], sc.head_cost[top], sc.give[c], sc.left, 1
        ) == 0:  # fmt: skip
            sc.spare[ties] = b
            ties += 1
    while sc.left[0] >= largest:
        b = sc.spare[0]
        for i in range(1, ties):
            other = sc.spare[i]
            if earlier(sc, sc.sorted[group[other, _FIRST]], sc.sorted[group[b, _FIRST]]):
                b = other
        _take_top(ma, cl, ids, ro, fa, ho, wo, sc, r, group, b, takes, planned)
        takes += 1
        if group[b, _SIZE] == 0:
            break
    return takes


@inner
def _make_groups(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, sc: Scratch, r: int, heads: int
) -> int:
    """Heads that can ever be taken as heaps in ``sc.sorted``, one per kind and tier; how many."""
    group, number, count = sc.tier_group, sc.kind_group, 0
    constrained = ro.spread[r] < ro.spread[r + 1]
    for h in range(heads):
        c = sc.head_cls[h]
        tier = GOOD if sc.head_idle[h] else CREATE
        if sc.head_at[h] == NEXT_RESERVED:
            tier = RESERVED
        if (tier == CREATE and cl.cooling[c]) or (
            constrained and not has_labels(ma, ro, fa, r, sc.head[h])
        ):
            sc.head_tier[h] = ABSENT
            continue
        sc.head_tier[h] = tier
        b = number[3 * fa.kind[c] + tier]
        if b < 0:
            b = number[3 * fa.kind[c] + tier] = count
            group[b, _TIER], group[b, _CLASS] = tier, c
            group[b, _SIZE] = group[b, _LIVE] = group[b, _FIRST] = 0
            count += 1
        sc.head_group[h] = b
        group[b, _LIVE] += 1
    for b in range(count):
        number[3 * fa.kind[group[b, _CLASS]] + group[b, _TIER]] = _NONE
        if b > 0:
            group[b, _FIRST] = group[b - 1, _FIRST] + group[b - 1, _LIVE]
    for h in range(heads):
        if sc.head_tier[h] != ABSENT:
            b = sc.head_group[h]
            sc.sorted[group[b, _FIRST] + group[b, _SIZE]] = h
            group[b, _SIZE] += 1
    for b in range(count):
        for i in range(group[b, _SIZE] // 2 - 1, -1, -1):
            _sift_down(sc, group[b, _FIRST], i, group[b, _SIZE])
    return count


@inner
def _mark_reachable(
    ma: MachineArrays, ro: Rows, fa: Facts, sc: Scratch, over: int, heads: int
) -> None:
    """Mark the racks from which the row could take a machine; no head waits yet."""
    sc.clock[0] += 1
    key = ro.spread_key[over]
    for h in range(heads):
        if sc.head_tier[h] != ABSENT:
            sc.mark[domain_of(ma, fa, key, sc.head[h])] = sc.clock[0]
    for d in range(fa.domain_count[key]):
        sc.chain_head[d] = _NONE


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
def _readmit(ro: Rows, fa: Facts, wo: Work, sc: Scratch, over: int, level: I64, group: I64) -> None:
    """Put the heads of racks that are no longer full back into their heaps."""
    for d in range(fa.domain_count[ro.spread_key[over]]):
        if sc.chain_head[d] < 0 or _full(ro, wo, over, level, d):
            continue
        h = sc.chain_head[d]
        while h >= 0:
            after = sc.head_at[h]
            b = sc.head_group[h]
            sc.head_at[h] = NEXT_RESERVED if group[b, _TIER] == RESERVED else CHAINED
            first, size = group[b, _FIRST], group[b, _SIZE]
            sc.sorted[first + size] = h
            group[b, _SIZE] += 1
            _sift_up(sc, first, size)
            h = after
        sc.chain_head[d] = _NONE


@inner
def _best_group(
    ma: MachineArrays, cl: ClassArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, r: int,
    over: int, level: I64, group: I64, count: int, limited: bool,
) -> int:  # fmt: skip
    """The group whose top is the row's next machine, -1 for none."""
    cheapest, width = -1, ro.width[r]
    for b in range(count):
        group[b, _OPEN] = _NONE
        if limited and group[b, _TIER] == CREATE:
            if not may_create(cl, fa, wo, group[b, _CLASS]):
                continue
        if group[b, _SIZE] > 0 and (
            over < 0 or _uncover_top(ma, ro, fa, wo, sc, over, level, group, b)
        ):
            group[b, _OPEN] = group[b, _TIER]
    for i in range(ro.spread[r], ro.spread[r + 1]):
        if i != over:
            _close_skewed(cl, ro, fa, wo, i, group, count, limited)
    for b in range(count):
        if group[b, _OPEN] == CREATE:
            cost = sc.head_cost[sc.sorted[group[b, _FIRST]]]
            if cheapest < 0 or cost < cheapest:
                cheapest = cost
    best, best_tier = _NONE, 9
    for b in range(count):
        tier = group[b, _OPEN]
        if tier == GOOD and 0 <= cheapest < cl.loss[group[b, _CLASS], ro.interruption[r]]:
            tier = group[b, _OPEN] = RISKY
        if tier < 0 or tier > best_tier:
            continue
        h = sc.sorted[group[b, _FIRST]]
        x = rough_cost(sc.head_cost[h], sc.give[group[b, _CLASS]], sc.left, width)
        if tier == best_tier:
            other = sc.sorted[group[best, _FIRST]]
            y = sc.head_x[other]
            if x > y + CLOSE * y or (x >= y - CLOSE * y and not better(sc, width, h, other)):
                continue
        sc.head_x[h] = x
        best, best_tier = b, tier
    return best


@inner
def _uncover_top(
    ma: MachineArrays, ro: Rows, fa: Facts, wo: Work, sc: Scratch, over: int, level: I64,
    group: I64, b: int,
) -> bool:  # fmt: skip
    """Let heads of full racks wait until one with room is on top; whether there is one."""
    while group[b, _SIZE] > 0:
        h = sc.sorted[group[b, _FIRST]]
        domain = domain_of(ma, fa, ro.spread_key[over], sc.head[h])
        if not _full(ro, wo, over, level, domain):
            return True
        sc.head_at[h] = sc.chain_head[domain]
        sc.chain_head[domain] = h
        _drop_top(sc, group, b)
    return False


@inner
def _close_skewed(
    cl: ClassArrays, ro: Rows, fa: Facts, wo: Work, i: int, group: I64, count: int, limited: bool
) -> None:
    """Close groups whose domain, an attribute of the class, would exceed the smallest."""
    key, base = ro.spread_key[i], ro.spread_count[i]
    floor = -1
    for d in range(fa.domain_count[key]):
        if wo.spread[base + d] > 0 and (floor < 0 or wo.spread[base + d] < floor):
            floor = wo.spread[base + d]
    for b in range(count):
        c = group[b, _CLASS]
        if group[b, _LIVE] > 0 and wo.spread[base + fa.domain_of_class[key, c]] == 0:
            if not limited or group[b, _TIER] != CREATE or may_create(cl, fa, wo, c):
                floor = 0
    for b in range(count):
        have = wo.spread[base + fa.domain_of_class[key, group[b, _CLASS]]]
        if have + 1 - max(floor, 0) > ro.spread_skew[i]:
            group[b, _OPEN] = _NONE


@inner
def _drop_top(sc: Scratch, group: I64, b: int) -> None:
    first = group[b, _FIRST]
    group[b, _SIZE] -= 1
    sc.sorted[first] = sc.sorted[first + group[b, _SIZE]]
    _sift_down(sc, first, 0, group[b, _SIZE])


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
