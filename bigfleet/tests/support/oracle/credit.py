"""Credit: every row first claims what its cluster already has."""

from __future__ import annotations

from collections.abc import Iterable

from bigfleet.model import Machine, MachineState, Stamp
from oracle.gangs import choose_in_credit
from oracle.world import Row, World, covered, ident_of_stamp, penalty_rank

_STATE_RANK = {
    MachineState.CONFIGURED: 0,
    MachineState.CONFIGURING: 1,
    MachineState.CREATING: 2,
    MachineState.IDLE: 2,
}


def credit(world: World) -> None:
    plain = [r for r in world.rows if not r.is_gang]
    gangs = [r for r in world.rows if r.is_gang]
    for row in plain:
        claim_held(world, row)
    for row in plain:
        claim_stamped(world, row)
    for row in gangs:
        choose_in_credit(world, row)
        claim_held(world, row)
    for row in gangs:
        claim_stamped(world, row)
        hold_old_domains(world, row)
    for row in world.rows:
        claim_others(world, row)
    give_up_ready(world)


def held_order(world: World, row: Row, m: Machine) -> tuple[object, ...]:
    """The costliest of before a shrink last; later ones as they came, that is, were claimed."""
    assert m.stamp is not None
    if m.stamp.sequence < row.shrunk_at:
        rank, unit = _STATE_RANK[m.state], not world.covers_unit(row, m)
        return (0, unit, rank, m.price_micro, -penalty_rank(m.stamp), m.id)
    return (1, m.stamp.sequence, m.id)


def round_order(world: World, row: Row, m: Machine) -> tuple[object, ...]:
    """Serving machines first; the costliest of before a shrink last; later ones as they came."""
    sequence = m.stamp.sequence if m.stamp is not None else 0
    if sequence < row.shrunk_at:
        return (_STATE_RANK[m.state], 0, m.price_micro, -penalty_rank(m.stamp), m.id)
    return (_STATE_RANK[m.state], 1, sequence, 0, m.id)


def claim_in_order(world: World, row: Row, machines: Iterable[Machine]) -> None:
    ordered = sorted(machines, key=lambda m: round_order(world, row, m))
    for wants_unit in (True, False):
        for m in ordered:
            if world.covers_unit(row, m) is not wants_unit or m.id in world.claimed_by:
                continue
            left = world.deficit(row)
            if not covered(left) and world.reduces(row, left, m):
                restamp(world, row, m)
                claim(world, row, m)


def claim(world: World, row: Row, m: Machine) -> None:
    """Count a machine for the row; an Idle one is taken with it and keeps its stamp as it is."""
    world.claim(row, m)
    if m.state is MachineState.IDLE:
        assert m.stamp is not None
        world.taken_by[m.id] = row
        row.taken.append(m.id)
        row.ready.append(m.id)
        world.restamped[m.id] = (row, m.stamp, m.stamp.sequence)


def ready_for(world: World, row: Row) -> list[Machine]:
    """Idle machines that were made or freed for exactly this row, and still suit it."""
    if row.is_gang or world.fact(row.need.cluster).blocked:
        return []
    return [
        m
        for m in world.machines.values()
        if m.state is MachineState.IDLE
        and m.id not in world.claimed_by
        and m.stamp is not None
        and ident_of_stamp(m.stamp) in row.idents
        and world.usable(m)
        and world.may_place(row, m)
        and world.covers_unit(row, m)
        and world.offers_all(row, m)
        and world.cost(row, m) is not None
    ]


def give_up_ready(world: World) -> None:
    """Idle machines that rows counted are free again where an unmet row of higher priority may
    take them: it is for that row's turn to decide."""
    from oracle.acquire import can_serve

    unmet = [
        row
        for row in world.rows
        if not covered(world.deficit(row))
        and not world.fact(row.need.cluster).blocked
        and (not row.is_gang or row.satisfiable)
    ]
    for row in world.rows:
        higher = [u for u in unmet if u.need.profile.priority > row.need.profile.priority]
        for mid in list(row.ready):
            m = world.machines[mid]
            if any(can_serve(world, other, m, None) for other in higher):
                world.unclaim(m)
                row.taken.remove(mid)
                row.ready.remove(mid)
                del world.taken_by[mid], world.restamped[mid]


def claim_held(world: World, row: Row) -> None:
    """What is stamped for exactly this row.

    All of it, as long as each machine is needed beside those that the row claimed before it. Where
    something is surplus, the order of states decides what.
    """
    mine = [m for m in claimable(world, row) if m.stamp and ident_of_stamp(m.stamp) in row.idents]
    mine += ready_for(world, row)
    ordered = sorted(mine, key=lambda m: held_order(world, row, m))
    if needs_each(world, row, ordered):
        for m in ordered:
            claim(world, row, m)
    else:
        claim_in_order(world, row, mine)


def needs_each(world: World, row: Row, ordered: Iterable[Machine]) -> bool:
    """Each machine makes less of what those before it leave missing."""
    left = world.deficit(row)
    for m in ordered:
        if covered(left) or not world.reduces(row, left, m):
            return False
        left = world.minus(row, left, m)
    return True


def restamp(world: World, row: Row, m: Machine) -> None:
    """A claim re-stamps; where the stamp has the key of a member, it says that member again."""
    if m.stamp is not None and ident_of_stamp(m.stamp) in row.idents:
        return
    keeps = m.stamp is not None and m.stamp.key in row.keys
    member = (
        next(n for n in row.members if n.stamp_key == m.stamp.key)
        if keeps and m.stamp is not None
        else world.member_for(row)
    )
    world.restamp(row, m, Stamp.for_need(member, 0))


def claimable(world: World, row: Row) -> list[Machine]:
    """Unclaimed machines counting for the row's cluster that match it (in its domain)."""
    return [
        m
        for m in world.machines.values()
        if world.counts_for(m) == row.need.cluster
        and m.id not in world.claimed_by
        and world.matches(row, m)
        and (not row.is_gang or (row.domain is not None and world.domain_of(row, m) == row.domain))
    ]


def claim_stamped(world: World, row: Row) -> None:
    """What is stamped for a member under another fingerprint."""
    mine = [m for m in claimable(world, row) if m.stamp is not None and m.stamp.key in row.keys]
    untouched = world.deficit(row) == {d: row.need.aggregate[d] for d in row.demanded}
    claim_in_order(world, row, mine)
    # A row whose profile changed as a whole keeps its order; beside others these come last.
    for mid in row.claims if untouched else []:
        stamp = world.machines[mid].stamp
        assert stamp is not None
        world.restamped[mid] = (row, world.restamped[mid][1], stamp.sequence)


def hold_old_domains(world: World, row: Row) -> None:
    """A gang that moves keeps its old machines until the new ones serve."""
    serving = covered(world.deficit(row)) and all(
        world.machines[mid].state is MachineState.CONFIGURED for mid in row.claims
    )
    if serving:
        return
    for m in world.machines.values():
        if (
            m.id not in world.claimed_by
            and world.counts_for(m) == row.need.cluster
            and m.stamp is not None
            and m.stamp.key in row.keys
            and world.matches(row, m)
            and world.domain_of(row, m) != row.domain
        ):
            world.claimed_by[m.id] = row
            row.held.append(m.id)


def claim_others(world: World, row: Row) -> None:
    pinned = row.need.profile.interruption.pinned
    others = [m for m in claimable(world, row) if not (pinned and m.interruption_probability > 0)]
    orphans = [m for m in others if world.owner(m.stamp) is None]
    left_over = [m for m in others if world.owner(m.stamp) not in (None, row)]
    for wants_unit in (True, False):
        for pool in (orphans, left_over):
            claim_in_order(world, row, [m for m in pool if world.covers_unit(row, m) is wants_unit])
