"""Reclaim and release, and the verdict of every need."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from bigfleet.decision.kinds import Reason
from bigfleet.model import CapacityType, Machine, MachineState
from oracle.acquire import satisfied
from oracle.world import Row, Vector, World, covered, ident_of_need

S = MachineState


def reclaims(world: World, unclaimed: dict[str, int]) -> list[Machine]:
    """Configured machines to drain, in order; ``unclaimed`` says since when no need claims them."""
    found = []
    for m in world.machines.values():
        if m.state is not S.CONFIGURED or m.leaving is not None or m.is_kept_out:
            continue
        if m.id in world.claimed_by or m.id in world.preempted:
            continue
        reported = world.fact(m.cluster).reported
        if world.ending(m) and world.now >= m.interruption_at_ns - world.policy.interruption_lead:
            found.append(m)
        elif not reported or m.do_not_disrupt:
            continue
        elif not world.usable(m) and world.owner(m.stamp) is not None:
            if _replaced(world, world.owner(m.stamp)):
                found.append(m)
        elif world.now - unclaimed[m.id] >= world.policy.reclaim_hold:
            found.append(m)
    return sorted(found, key=_gentle)


def _gentle(m: Machine) -> tuple[object, ...]:
    return (m.pods is None, m.pods or 0, -m.price_micro, m.id)


def _replaced(world: World, row: Row | None) -> bool:
    """The row of a failing machine is served by Configured machines alone."""
    if row is None or not satisfied(world, row):
        return False
    claims = [mid for r in (row, *row.gangs) for mid in r.claims]
    return all(world.machines[mid].state is S.CONFIGURED for mid in claims)


def releases(world: World) -> list[Machine]:
    holds = {
        CapacityType.SPOT: world.policy.spot_release_hold,
        CapacityType.ON_DEMAND: world.policy.on_demand_release_hold,
    }
    found = []
    for m in world.machines.values():
        if m.state is not S.IDLE or not world.usable(m) or m.id in world.taken_by:
            continue
        owner = world.owner(m.stamp)
        reserved = owner is not None and not satisfied(world, owner)
        if m.stamp is not None and not world.fact(m.stamp.cluster).reported:
            # Silence is not "no demand".
            reserved = True
        hold = holds.get(m.capacity_type)
        if hold is not None and not reserved and world.now - m.idle_since_ns >= hold:
            found.append(m)
    return sorted(found, key=lambda m: m.id)


@dataclass(frozen=True)
class Verdict:
    """What became of one row."""

    satisfied: bool
    deficit: Vector
    claimed: int
    from_idle: int
    from_speculative: int
    domain: tuple[str, ...] | None
    candidates: tuple[tuple[tuple[str, ...], Fraction, bool], ...]
    satisfiable: bool
    reason: Reason
    victims: int
    matching: dict[str, int]
    short: Vector
    """What is missing beyond machines that are being drained for it."""
    members: tuple[tuple[object, ...], ...]


def verdict(world: World, row: Row) -> Verdict:
    ok = satisfied(world, row)
    rows = (row, *row.gangs)
    taken = [world.machines[mid] for r in rows for mid in r.taken]
    return Verdict(
        satisfied=ok,
        deficit=residual(world, row),
        claimed=sum(len(r.claims) + len(r.held) for r in rows),
        from_idle=sum(m.state is S.IDLE for m in taken),
        from_speculative=sum(m.state is S.SPECULATIVE for m in taken),
        domain=row.domain,
        candidates=tuple(row.candidates),
        satisfiable=row.satisfiable,
        reason=Reason.NONE if ok else reason(world, row),
        victims=len(row.picks),
        matching=matching(world, row),
        short={} if ok else {d: v for d, v in _short(world, row).items() if v > 0},
        members=tuple(ident_of_need(member) for member in row.members),
    )


def residual(world: World, row: Row) -> Vector:
    if row.gangs:
        from oracle.acquire import missing_units

        served = sum(covered(world.deficit(g)) for g in row.gangs)
        units = max(0, missing_units(world, row) - served)
        return {d: units * row.need.min_unit[d] for d in row.demanded if units}
    return {d: v for d, v in world.deficit(row).items() if v > 0}


def suits(world: World, row: Row, m: Machine) -> bool:
    return world.may_place(row, m) and world.covers_unit(row, m) and world.offers_all(row, m)


def matching(world: World, row: Row) -> dict[str, int]:
    counts: dict[str, int] = {}
    for m in world.machines.values():
        if m.state is not S.FAILED and suits(world, row, m):
            counts[m.state.title] = counts.get(m.state.title, 0) + 1
    return counts


def reason(world: World, row: Row) -> Reason:
    if world.fact(row.need.cluster).blocked:
        return Reason.BOOTSTRAP_ERROR
    waiting = [
        m
        for m in world.machines.values()
        if m.state is S.SPECULATIVE
        and m.id not in world.taken_by
        and world.usable(m)
        and suits(world, row, m)
        and world.cost(row, m) is not None
    ]
    behind = {
        Reason.QUOTA: [m for m in waiting if not world.within_quota(m, world.used)],
        Reason.SPEND_LIMIT: [m for m in waiting if not world.within_spend(m, world.spend)],
        Reason.STOCK_OUT: [m for m in waiting if not world.in_stock(m)],
    }
    for limit in (Reason.QUOTA, Reason.SPEND_LIMIT):
        behind[limit] = [m for m in behind[limit] if world.in_stock(m)]
    behind[Reason.SPEND_LIMIT] = [
        m for m in behind[Reason.SPEND_LIMIT] if m not in behind[Reason.QUOTA]
    ]
    for limit, slots in behind.items():
        if slots and _would_do(world, row, slots):
            return limit
    some = [limit for limit, slots in behind.items() if slots]
    if some and _would_do(world, row, [m for slots in behind.values() for m in slots]):
        return some[0]
    if world.policy.paused:
        return Reason.PAUSED
    if row.is_gang and (row.domain is None or not row.satisfiable):
        return Reason.TOPOLOGY_UNSATISFIABLE
    fitting = matching(world, row)
    if not fitting:
        return Reason.NO_MATCHING_SUPPLY
    if some and fitting.keys() <= {S.SPECULATIVE.title}:
        return some[0]
    if row.picks and not _enough(world, row):
        return Reason.PREEMPTION_EXHAUSTED
    return Reason.PRIORITY_STARVED


def _would_do(world: World, row: Row, slots: list[Machine]) -> bool:
    left = _short(world, row)
    for m in slots:
        left = world.minus(row, left, m)
    return covered(left)


def _enough(world: World, row: Row) -> bool:
    return covered(_short(world, row))


def _short(world: World, row: Row) -> Vector:
    left = residual(world, row)
    for mid in [*row.expected, *row.picks]:
        if mid not in row.moved_in and left:
            left = world.minus(row, left, world.machines[mid])
    return left
