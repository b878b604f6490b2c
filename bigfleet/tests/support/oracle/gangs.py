"""The domain of a gang: chosen once per cycle, by one order over all domains."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from bigfleet.model import Machine, MachineState
from oracle.world import Row, Vector, World

S = MachineState
Domain = tuple[str, ...]


def coming_for(world: World, row: Row) -> list[Machine]:
    """Machines leaving or Draining for this row: Draining first, then by id."""
    found = [
        m
        for m in world.machines.values()
        if m.state in (S.CONFIGURED, S.DRAINING)
        and m.leaving is not None
        and m.leaving.for_stamp is not None
        and m.leaving.for_stamp.key in row.keys
        and world.usable(m)
        and m.id not in world.kept_ids()
        and world.matches(row, m)
    ]
    return sorted(found, key=lambda m: (m.state is not S.DRAINING, m.id))


def choose_in_credit(world: World, row: Row) -> None:
    """A gang with something to credit chooses now; one with nothing chooses at its turn."""
    stamped, others = holdings(world, row)
    if stamped or others:
        choose(world, row, planned=True)
        if row.domain is not None:
            from oracle.acquire import gang_takes

            world.aside.update(m.id for m in gang_takes(world, row, planned=True))


def holdings(world: World, row: Row) -> tuple[list[Machine], list[Machine]]:
    """What is stamped for the gang in any state, and what else it could credit."""
    stamped = [
        m
        for m in world.machines.values()
        if m.stamp is not None
        and m.stamp.key in row.keys
        and m.leaving is None
        and world.usable(m)
        and world.matches(row, m)
        and (
            (m.state is S.IDLE and world.may_place(row, m))
            or (world.counts_for(m) == row.need.cluster and m.id not in world.claimed_by)
        )
    ]
    stamped += coming_for(world, row)
    others = [
        m
        for m in world.machines.values()
        if world.counts_for(m) == row.need.cluster
        and m.id not in world.claimed_by
        and world.matches(row, m)
        and not (row.need.profile.interruption.pinned and m.interruption_probability > 0)
        and (m.stamp is None or m.stamp.key not in row.keys)
        and not _is_gangs(world, m)
    ]
    return stamped, others


def _is_gangs(world: World, m: Machine) -> bool:
    owner = world.owner(m.stamp)
    return owner is not None and owner.is_gang


def choose(world: World, row: Row, *, planned: bool) -> None:
    """Rank all domains; ``planned`` keeps off what earlier gangs have set aside."""
    from oracle.acquire import free_for

    row.chosen = True
    stamped, others = holdings(world, row)
    idle, speculative = free_for(world, row, None, planned=planned)
    mine = {m.id for m in stamped + others}
    free = [m for m in idle if m.id not in mine]
    yielding = [m for m in world.machines.values() if _might_yield(world, row, m)]
    victims = [m for m in yielding if m.id not in mine]
    parts = {
        "stamped": _by_domain(world, row, stamped),
        "others": _by_domain(world, row, others),
        "idle": _by_domain(world, row, free),
        "speculative": _by_domain(world, row, speculative),
        "victims": _by_domain(world, row, victims),
    }
    ranked = []
    for domain in set().union(*parts.values()):
        here = {name: part.get(domain, []) for name, part in parts.items()}
        ranked.append(_rank(world, row, domain, here))
    ranked.sort(key=lambda r: r[0])
    row.candidates = [(domain, cover, ok) for _, domain, cover, ok in ranked[:5]]
    row.satisfiable = any(ok for _, _, _, ok in ranked)
    row.domain = ranked[0][1] if ranked else None


def _rank(
    world: World, row: Row, domain: Domain, here: dict[str, list[Machine]]
) -> tuple[tuple[object, ...], Domain, Fraction, bool]:
    near = here["stamped"] + here["others"] + here["idle"]
    near += _within_limits(world, here["speculative"])
    total, count = _coverage(world, row, near), len(near)
    category = 0 if total >= 1 else 1
    if category:
        everything = near + here["victims"]
        total, count = _coverage(world, row, everything), len(everything)
        category = 1 if total >= 1 else 2
    order = (
        category,
        -min(Fraction(1), _coverage(world, row, here["stamped"])),
        -min(Fraction(1), _coverage(world, row, here["others"])),
        total if category < 2 else -total,
        -count,
        domain,
    )
    return order, domain, min(Fraction(1), total), category < 2


def _coverage(world: World, row: Row, machines: Iterable[Machine]) -> Fraction:
    """The worst demanded dimension of what these give together; uncapped."""
    given: Vector = dict.fromkeys(row.demanded, 0)
    for m in machines:
        for d, v in world.contribution(row, m).items():
            given[d] += v
    return min((Fraction(v, row.need.aggregate[d]) for d, v in given.items()), default=Fraction(1))


def _by_domain(world: World, row: Row, machines: Iterable[Machine]) -> dict[Domain, list[Machine]]:
    found: dict[Domain, list[Machine]] = {}
    for m in machines:
        domain = world.domain_of(row, m)
        if domain is not None:
            found.setdefault(domain, []).append(m)
    return found


def _within_limits(world: World, speculative: list[Machine]) -> list[Machine]:
    """In the order of ids, as far as the limits reach if only this domain drew on them."""
    used, spend, within = dict(world.used), world.spend, []
    for m in sorted(speculative, key=lambda m: m.id):
        if world.may_create(m, used, spend):
            within.append(m)
            used[m.provider, m.region] = used.get((m.provider, m.region), 0) + 1
            spend += world.elastic_price(m)
    return within


def _might_yield(world: World, row: Row, m: Machine) -> bool:
    """Excess, or held by a need that is strictly lower: what phase 2 may be able to take."""
    if m.state is not S.CONFIGURED or m.leaving is not None or not world.usable(m):
        return False
    if not (world.may_place(row, m) and world.covers_unit(row, m) and world.offers_all(row, m)):
        return False
    if world.cost(row, m) is None:
        return False
    owner = world.owner(m.stamp)
    if owner is not None:
        return owner.need.profile.priority < row.need.profile.priority
    if world.fact(m.cluster).reported:
        return True
    return m.stamp is not None and m.stamp.priority < row.need.profile.priority
