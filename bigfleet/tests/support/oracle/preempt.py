"""Preempt: excess first, then strictly lower needs, for what phase 1 left unmet."""

from __future__ import annotations

from bigfleet.decision.policy import VOLUNTARY_GRACE_SECONDS
from bigfleet.model import Machine, MachineState, PenaltyBucket, Stamp
from oracle.acquire import acquire, can_serve, commit, constraints, satisfied, untake
from oracle.world import Row, Vector, World, covered
from plain_rules import drain_grace_seconds, matchable_labels

S = MachineState
Room = dict[tuple[str, int], dict[str, int]]


def preempt(world: World) -> None:
    budget = dict(world.policy.reclaim_budget) if world.policy.reclaim_budget is not None else None
    unmet = [row for row in world.rows if not satisfied(world, row)]
    for row in unmet:
        if world.fact(row.need.cluster).blocked:
            continue
        if row.is_gang and row.domain is None:
            continue
        _preempt_for(world, row, budget)
    for row in world.rows:
        if row.moved_in and not any(covered(world.deficit(gang)) for gang in row.gangs):
            _give_back(world, row)


def _give_back(world: World, row: Row) -> None:
    """Takes that are redundant beside what moved in: costliest first, the last id first on ties."""

    def cost(m: Machine) -> int:
        value = world.cost(row, m)
        assert value is not None
        return value

    takes = [world.machines[mid] for mid in sorted({*row.taken} - {*row.ready}, reverse=True)]
    for m in sorted(takes, key=cost, reverse=True):
        if covered(world.deficit(row, without=m.id)):
            world.unclaim(m)
            untake(world, m)
            row.taken.remove(m.id)
            del world.restamped[m.id]


def _preempt_for(world: World, row: Row, budget: dict[str, int] | None) -> None:
    left = _missing(world, row)
    if covered(left):
        return
    free: list[Machine] = []
    if row.is_gang:
        free = acquire(world, row, left, row.domain)
        for m in free:
            left = world.minus(row, left, m)
    picks = _pick(world, row, left, budget)
    for m in picks:
        left = world.minus(row, left, m)
    if row.is_gang and not covered(left):
        for m in free:
            untake(world, m)
        return
    commit(world, row, free)
    for m in _without_redundant(world, row, left, picks):
        _take_from(world, row, m, budget)


def _missing(world: World, row: Row) -> Vector:
    left = world.deficit(row)
    for mid in row.lost:
        left = world.minus(row, left, world.machines[mid])
    if row.gangs:
        served = sum(covered(world.deficit(g)) for g in row.gangs)
        units = max(-(-v // row.need.min_unit[d]) for d, v in left.items()) - served
        left = {d: units * row.need.min_unit[d] for d in row.demanded}
    for mid in row.expected:
        left = world.minus(row, left, world.machines[mid])
    return left


def _pick(world: World, row: Row, left: Vector, budget: dict[str, int] | None) -> list[Machine]:
    picks: list[Machine] = []
    allowance = dict(budget) if budget is not None else None
    room = _room(world, row)
    while not covered(left):
        excess = [
            m
            for m in world.machines.values()
            if m not in picks
            and _is_excess(world, row, m)
            and _has_room(room, m, picks)
            and (allowance is None or allowance.get(m.cluster, 0) > 0)
        ]
        if excess:
            best = min(
                excess,
                key=lambda m: (world.cost_per_unit(row, m, left), world.avoided(row, m), m.id),
            )
            if allowance is not None:
                allowance[best.cluster] -= 1
        else:
            victims = [
                m
                for m in world.machines.values()
                if m not in picks and _is_victim(world, row, m) and _has_room(room, m, picks)
            ]
            if not victims:
                break
            best = min(victims, key=lambda m: (-score(world, row, m), m.id))
        picks.append(best)
        left = world.minus(row, left, best)
    return picks


def _room(world: World, row: Row) -> Room:
    """Per constraint and value: how many more a need with spread could take once they are free."""
    keys = [key for key, _ in constraints(row)]
    could = [
        labels
        for m in world.machines.values()
        if _is_excess(world, row, m) or _is_victim(world, row, m)
        if set(keys) <= (labels := matchable_labels(m)).keys()
    ]
    have = [matchable_labels(world.machines[mid]) for mid in [*row.claims, *row.expected]]
    room: Room = {}
    for key, skew in constraints(row):
        counts = {labels[key]: 0 for labels in could}
        for labels in have:
            if key in labels:
                counts[labels[key]] = counts.get(labels[key], 0) + 1
        floor = min(counts.values(), default=0)
        room[key, skew] = {value: floor + skew - count for value, count in counts.items()}
    return room


def _has_room(room: Room, m: Machine, picks: list[Machine]) -> bool:
    labels = matchable_labels(m)
    return all(
        key in labels
        and sum(matchable_labels(p)[key] == labels[key] for p in picks) < left.get(labels[key], 0)
        for (key, _), left in room.items()
    )


def _takeable(world: World, row: Row, m: Machine) -> bool:
    return (
        m.state is S.CONFIGURED
        and m.leaving is None
        and m.id not in world.preempted
        and can_serve(world, row, m, row.domain if row.is_gang else None)
    )


def _is_excess(world: World, row: Row, m: Machine) -> bool:
    return (
        _takeable(world, row, m)
        and m.id not in world.claimed_by
        and m.cluster != row.need.cluster
        and world.fact(m.cluster).reported
        and not m.do_not_disrupt
    )


def _is_victim(world: World, row: Row, m: Machine) -> bool:
    if not _takeable(world, row, m) or m.id in row.claims or m.id in row.held:
        return False
    priority = held_priority(world, m)
    return priority is not None and priority < row.need.profile.priority


def held_priority(world: World, m: Machine) -> int | None:
    """The priority a machine is protected by: its claimant's, or its stamp's before any report."""
    holder = world.claimed_by.get(m.id)
    if holder is not None:
        return holder.need.profile.priority
    if not world.fact(m.cluster).reported and m.stamp is not None:
        return m.stamp.priority
    return None


def penalties(world: World, m: Machine) -> tuple[PenaltyBucket, PenaltyBucket]:
    holder = world.claimed_by.get(m.id)
    if holder is not None:
        return holder.need.profile.interruption, holder.need.profile.reclamation
    assert m.stamp is not None
    return m.stamp.interruption, m.stamp.reclamation


def score(world: World, row: Row, m: Machine) -> float:
    weights = world.policy.weights
    priority = held_priority(world, m)
    assert priority is not None
    gap = row.need.profile.priority - priority
    offering = (m.provider, m.instance_type, m.zone, m.capacity_type)
    drain = world.drain_seconds.get(offering, float(drain_grace_seconds(gap)))
    interruption, reclamation = penalties(world, m)
    return (
        gap * weights.priority
        + (1.0 / max(drain, 1.0)) * weights.drain
        + _reciprocal(interruption) * weights.interruption
        + _reciprocal(reclamation) * weights.reclamation
    )


def _reciprocal(bucket: PenaltyBucket) -> float:
    return 0.0 if bucket.pinned else 1.0 / max(bucket.dollars, 0.01)


def _without_redundant(world: World, row: Row, left: Vector, picks: list[Machine]) -> list[Machine]:
    """Last picked is first given back, when the rest still covers."""
    kept = list(picks)
    if not covered(left):
        return kept
    for m in reversed(picks):
        give = world.contribution(row, m)
        without = {d: v + give[d] for d, v in left.items()}
        if covered(without):
            kept.remove(m)
            left = without
    return kept


def _take_from(world: World, row: Row, m: Machine, budget: dict[str, int] | None) -> None:
    row.picks.append(m.id)
    priority = held_priority(world, m)
    holder = world.claimed_by.get(m.id)
    if holder is not None:
        if m.id in holder.claims:
            holder.lost.append(m.id)
        world.unclaim(m)
    stamp = Stamp.for_need(world.member_for(row), 0)
    if m.cluster == row.need.cluster:
        world.restamp(row, m, stamp)
        world.claim(row, m)
        row.moved_in.append(m.id)
        return
    world.restamped.pop(m.id, None)
    if priority is None:
        if budget is not None:
            budget[m.cluster] -= 1
        grace = VOLUNTARY_GRACE_SECONDS
    else:
        grace = drain_grace_seconds(row.need.profile.priority - priority)
    world.preempted[m.id] = (row, grace)
    world.next_turn(m)
