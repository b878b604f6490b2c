"""Acquire: Idle and Speculative machines for what credit left missing, one machine at a time."""

from __future__ import annotations

from collections.abc import Iterable

from bigfleet.model import LABEL_HOSTNAME, Machine, MachineState, Stamp
from bigfleet.model.amounts.resources import is_uniform_multiple
from bigfleet.model.demand.profile import SpreadMode
from oracle.credit import claim_in_order
from oracle.gangs import choose, coming_for, holdings
from oracle.world import Row, Vector, World, covered, penalty_rank
from plain_rules import matchable_labels

S = MachineState


def assign(world: World) -> None:
    """Every row's turn, in the total order."""
    for row in world.rows:
        keep_leaving(world, row)
        if not world.fact(row.need.cluster).blocked:
            serve(world, row)
        expect(world, row)
        row.done = True


def serve(world: World, row: Row) -> None:
    if row.is_gang:
        serve_gang(world, row)
        return
    left = world.deficit(row)
    taken = acquire(world, row, left, None)
    commit(world, row, give_back(world, row, taken))
    if row.folded:
        serve_rest_as_gangs(world, row)


def serve_gang(world: World, row: Row) -> None:
    if not row.chosen and not covered(world.deficit(row)):
        choose(world, row, planned=False)
    if row.domain is not None:
        commit(world, row, give_back(world, row, gang_takes(world, row, planned=False)))


def serve_rest_as_gangs(world: World, row: Row) -> None:
    """What a folded row could not place on whole machines is tried as gangs, last members first."""
    missing = missing_units(world, row)
    unnamed = world.unnamed_members(row)
    for member in unnamed[len(unnamed) - missing :] if missing > 0 else []:
        gang = Row(member, [member], folded=False, shrunk_at=0)
        gang.position, gang.parent = row.position, row
        gang.units = is_uniform_multiple(member.aggregate, member.min_unit)
        row.gangs.append(gang)
        serve_gang(world, gang)
        gang.done = True


def missing_units(world: World, row: Row) -> int:
    unit, left = row.need.min_unit, world.deficit(row)
    return max(0, *(-(-v // unit[d]) for d, v in left.items()))


# -- taking ----------------------------------------------------------------------------------


def gang_takes(world: World, row: Row, *, planned: bool) -> list[Machine]:
    """All the gang lacks in its domain, or nothing."""
    assert row.domain is not None
    if planned:
        stamped, others = holdings(world, row)
        left = {d: row.need.aggregate[d] for d in row.demanded}
        for m in stamped + others:
            if m.state is not S.IDLE and world.domain_of(row, m) == row.domain:
                left = world.minus(row, left, m)
    else:
        left = world.deficit(row)
        for m in coming_for(world, row):
            if world.domain_of(row, m) == row.domain:
                left = world.minus(row, left, m)
    if covered(left):
        return []
    taken = acquire(world, row, left, row.domain, planned=planned)
    for m in taken:
        left = world.minus(row, left, m)
    complete = covered(left)
    if planned or not complete:
        for m in taken:
            untake(world, m)
    return taken if complete else []


def acquire(
    world: World,
    row: Row,
    left: Vector,
    domain: tuple[str, ...] | None,
    *,
    planned: bool = False,
) -> list[Machine]:
    taken: list[Machine] = []
    while not covered(left):
        m = next_machine(world, row, left, domain, taken, planned=planned)
        if m is None:
            break
        take(world, row, m)
        taken.append(m)
        left = world.minus(row, left, m)
    return taken


def next_machine(
    world: World,
    row: Row,
    left: Vector,
    domain: tuple[str, ...] | None,
    taken: list[Machine],
    *,
    planned: bool,
) -> Machine | None:
    idle, speculative = free_for(world, row, domain, planned=planned)
    idle, speculative = within_skew(world, row, taken, idle, speculative)

    def cost_order(m: Machine) -> tuple[object, ...]:
        return (world.cost_per_unit(row, m, left), world.avoided(row, m))

    def idle_order(m: Machine) -> tuple[object, ...]:
        return (*cost_order(m), penalty_rank(m.stamp), m.id)

    reserved = [m for m in idle if world.owner(m.stamp) in (row, row.parent) and m.stamp]
    reserved = [m for m in reserved if m.stamp is not None and m.stamp.key in row.keys]
    if reserved:
        return min(reserved, key=idle_order)
    costs = [c for m in speculative if (c := world.cost(row, m)) is not None]
    cheapest = min(costs, default=None)
    good: list[Machine] = []
    risky: list[Machine] = []
    for m in idle:
        loss = world.loss(row, m)
        assert loss is not None
        (risky if cheapest is not None and loss > cheapest else good).append(m)
    if good:
        return min(good, key=idle_order)
    if speculative:
        return min(speculative, key=lambda m: (*cost_order(m), m.id))
    return min(risky, key=idle_order) if risky else None


def free_for(
    world: World, row: Row, domain: tuple[str, ...] | None, *, planned: bool
) -> tuple[list[Machine], list[Machine]]:
    """Idle and Speculative machines this row could take now."""
    idle, speculative = [], []
    for m in world.machines.values():
        if m.id in world.taken_by or (planned and m.id in world.aside):
            continue
        if not can_serve(world, row, m, domain):
            continue
        if m.state is S.IDLE and not reserved_against(world, row, m):
            idle.append(m)
        elif (
            m.state is S.SPECULATIVE
            and world.in_stock(m)
            and world.may_create(m, world.used, world.spend)
        ):
            speculative.append(m)
    return idle, speculative


def can_serve(world: World, row: Row, m: Machine, domain: tuple[str, ...] | None) -> bool:
    return (
        world.usable(m)
        and world.may_place(row, m)
        and world.covers_unit(row, m)
        and world.offers_all(row, m)
        and world.cost(row, m) is not None
        and (domain is None or world.domain_of(row, m) == domain)
    )


def reserved_against(world: World, row: Row, m: Machine) -> bool:
    """Kept for a live, unmet row that had its turn before this one, or that waits for a gang's."""
    owner = world.owner(m.stamp)
    if owner is None or owner in (row, row.parent) or satisfied(world, owner):
        return False
    return owner.position < row.position or completes(world, row, owner, m)


def completes(world: World, row: Row, gang: Row, m: Machine) -> bool:
    """A gang of the same priority can be complete where it has this machine."""
    return (
        gang.is_gang
        and gang.need.profile.priority >= row.need.profile.priority
        and gang.satisfiable
        and gang.domain is not None
        and world.domain_of(gang, m) == gang.domain
    )


def satisfied(world: World, row: Row) -> bool:
    if row.gangs:
        return missing_units(world, row) <= sum(covered(world.deficit(g)) for g in row.gangs)
    return covered(world.deficit(row))


def take(world: World, row: Row, m: Machine) -> None:
    world.taken_by[m.id] = row
    if m.state is S.SPECULATIVE:
        key = (m.provider, m.region)
        world.used[key] = world.used.get(key, 0) + 1
        world.spend += world.elastic_price(m)


def untake(world: World, m: Machine) -> None:
    del world.taken_by[m.id]
    if m.state is S.SPECULATIVE:
        world.used[m.provider, m.region] -= 1
        world.spend -= world.elastic_price(m)


def give_back(world: World, row: Row, taken: list[Machine]) -> list[Machine]:
    """Drop takes that turned out redundant, costliest first, later takes first on ties."""
    coming = [m for m in coming_for(world, row) if row.is_gang]
    coming = [m for m in coming if world.domain_of(row, m) == row.domain]
    kept = list(taken)

    def cost(m: Machine) -> int:
        value = world.cost(row, m)
        assert value is not None
        return value

    for m in sorted(taken, key=lambda m: (-cost(m), -taken.index(m))):
        left = world.deficit(row)
        for other in [*kept, *coming]:
            if other is not m:
                left = world.minus(row, left, other)
        if covered(left):
            kept.remove(m)
            untake(world, m)
    return kept


def commit(world: World, row: Row, taken: Iterable[Machine]) -> None:
    for m in taken:
        world.restamp(row, m, Stamp.for_need(world.member_for(row), 0))
        world.claim(row, m)
        row.taken.append(m.id)


# -- spread ----------------------------------------------------------------------------------


def constraints(row: Row) -> list[tuple[str, int]]:
    """Same wins over spread on one need, also where its gangs are folded; hosts never bind."""
    if row.is_gang or row.folded:
        return []
    return [
        (s.key, max(1, s.max_skew))
        for s in row.need.profile.spread
        if s.when is SpreadMode.DO_NOT_SCHEDULE and s.key != LABEL_HOSTNAME
    ]


def within_skew(
    world: World,
    row: Row,
    taken: list[Machine],
    idle: list[Machine],
    speculative: list[Machine],
) -> tuple[list[Machine], list[Machine]]:
    have = [world.machines[mid] for mid in row.claims] + taken
    for key, _ in constraints(row):
        idle = [m for m in idle if key in matchable_labels(m)]
        speculative = [m for m in speculative if key in matchable_labels(m)]
    could = idle + speculative
    for key, skew in constraints(row):
        counts = {v: 0 for m in could if (v := matchable_labels(m).get(key)) is not None}
        for m in have:
            value = matchable_labels(m).get(key)
            if value is not None:
                counts[value] = counts.get(value, 0) + 1
        floor = min(counts.values(), default=0)
        allowed = {v for v, n in counts.items() if n + 1 - floor <= skew}
        idle = [m for m in idle if matchable_labels(m)[key] in allowed]
        speculative = [m for m in speculative if matchable_labels(m)[key] in allowed]
    return idle, speculative


# -- leaving and coming ----------------------------------------------------------------------


def keep_leaving(world: World, row: Row) -> None:
    """The old need of a leaving machine may claim it last of all: the drain is called off."""
    if covered(world.deficit(row)):
        return
    back = []
    for m in world.machines.values():
        if (
            m.state is not S.CONFIGURED
            or m.leaving is None
            or m.leaving.final
            or m.cluster != row.need.cluster
            or m.stamp is None
            or m.stamp.key not in row.keys
            or not world.usable(m)
            or not world.matches(row, m)
            or (row.is_gang and world.domain_of(row, m) != row.domain)
        ):
            continue
        if any(m.id in waiting.expected for waiting in world.rows):
            continue
        back.append(m)
    before = set(row.claims)
    claim_in_order(world, row, back)
    row.kept = [mid for mid in row.claims if mid not in before]
    for mid in row.kept:
        m = world.machines[mid]
        if mid not in world.restamped and m.stamp is not None:
            world.restamp(row, m, m.stamp)


def expect(world: World, row: Row) -> None:
    """What is on its way to this row and still needed; each machine for one row, its own first."""
    left = world.deficit(row)
    for m in coming_for(world, row):
        owner = world.owner(m.leaving.for_stamp) if m.leaving else None
        if any(m.id in other.expected for other in world.rows):
            continue
        if owner is not None and owner is not row and not owner.done:
            continue
        if row.is_gang and world.domain_of(row, m) != row.domain:
            continue
        if not covered(left) and world.reduces(row, left, m):
            row.expected.append(m.id)
            left = world.minus(row, left, m)
