"""Property 4: what is taken fits, was the cheapest allowed choice at its turn, and is needed."""

from collections import Counter
from collections.abc import Iterable

import pytest

from bigfleet.model import LABEL_HOSTNAME, Machine, MachineState, SpreadMode
from oracle.world import Row, Vector, covered, penalty_rank
from plain_rules import matchable_labels
from seen import Seen, seen, seen_spread
from sizes import chunks, label

S = MachineState
seeds = pytest.mark.parametrize("seeds", chunks(250, 50_000, 60, everything=1_000), ids=label)


def less(view: Seen, row: Row, left: Vector, machines: Iterable[Machine]) -> Vector:
    for m in machines:
        left = view.world.minus(row, left, m)
    return left


def wanted(row: Row) -> Vector:
    return {d: row.need.aggregate[d] for d in row.demanded}


@seeds
def test_what_is_taken_or_freed_matches_covers_the_unit_and_offers_every_dimension(
    seeds: range,
) -> None:
    for seed in seeds:
        view = seen(seed)
        for row in view.rows:
            # Members of a folded row may be served as gangs, from machines too small for a unit.
            whole = not row.folded
            for mid in (*row.taken, *row.ready, *row.picks):
                m = view.machines[mid]
                assert view.world.usable(m), (seed, mid)
                assert view.world.may_place(row, m), (seed, mid)
                assert not whole or view.world.covers_unit(row, m), (seed, mid)
                assert not whole or view.world.offers_all(row, m), (seed, mid)
                assert view.world.cost(row, m) is not None, (seed, mid)
            assert not (view.case.facts[row.need.cluster].blocked and row.taken), seed


def free_at_turn(view: Seen, row: Row) -> list[Machine]:
    """Free machines that no earlier row took and that would suit this one."""
    gone = {mid for earlier in view.rows[: row.position] for mid in earlier.taken}
    gone |= {mid for other in view.rows for mid in other.ready}
    return [
        m
        for m in view.machines.values()
        if m.state in (S.IDLE, S.SPECULATIVE)
        and m.id not in gone
        and view.world.usable(m)
        and view.world.may_place(row, m)
        and view.world.covers_unit(row, m)
        and view.world.offers_all(row, m)
        and view.world.cost(row, m) is not None
        and not kept_for_earlier(view, row, m)
    ]


def kept_for_earlier(view: Seen, row: Row, m: Machine) -> bool:
    """An Idle machine reserved for an unmet need before this one."""
    owner = view.world.owner(m.stamp) if m.state is S.IDLE else None
    return owner is not None and owner.position < row.position and not view.satisfied(owner)


def cheapest(view: Seen, row: Row, left: Vector, pool: list[Machine]) -> Machine | None:
    """The rule of section 4 for one step of a plain row, in the words of the rule."""

    def by_cost(m: Machine) -> tuple[object, ...]:
        return (view.world.cost_per_unit(row, m, left), view.world.avoided(row, m))

    def idle(m: Machine) -> tuple[object, ...]:
        return (*by_cost(m), penalty_rank(m.stamp), m.id)

    def risky(m: Machine) -> bool:
        loss = view.world.loss(row, m)
        return bool(creating) and loss is not None and loss > min(creating)

    creating = [
        c for m in pool if m.state is S.SPECULATIVE and (c := view.world.cost(row, m)) is not None
    ]
    reserved = [m for m in pool if m.state is S.IDLE and view.world.owner(m.stamp) is row]
    sound = [m for m in pool if m.state is S.IDLE and not risky(m)]
    new = [m for m in pool if m.state is S.SPECULATIVE]
    rest = [m for m in pool if m.state is S.IDLE]
    if reserved:
        return min(reserved, key=idle)
    if sound:
        return min(sound, key=idle)
    if new:
        return min(new, key=lambda m: (*by_cost(m), m.id))
    return min(rest, key=idle) if rest else None


def within_skew(row: Row, have: list[Machine], pool: list[Machine]) -> list[Machine]:
    """Machines in whose domains one more is not too many, as the rule of spread has it."""
    bound = [
        s
        for s in row.need.profile.spread
        if s.when is SpreadMode.DO_NOT_SCHEDULE and s.key != LABEL_HOSTNAME
    ]
    allowed = pool = [m for m in pool if all(s.key in matchable_labels(m) for s in bound)]
    for spread in bound:
        counts = Counter(matchable_labels(m).get(spread.key) for m in have)
        del counts[None]
        least = min((counts[matchable_labels(m)[spread.key]] for m in pool), default=0)
        least = min(least, *counts.values()) if counts else least
        allowed = [
            m for m in allowed if counts[matchable_labels(m)[spread.key]] < least + spread.max_skew
        ]
    return allowed


def choices(view: Seen, row: Row) -> set[str]:
    """Take the cheapest allowed machine until covered, then give back what is redundant."""
    held = view.held(row)
    left = less(view, row, wanted(row), held)
    pool, taken = free_at_turn(view, row), list[Machine]()
    while not covered(left):
        m = cheapest(view, row, left, within_skew(row, held + taken, pool))
        if m is None:
            break
        pool.remove(m)
        taken.append(m)
        left = view.world.minus(row, left, m)
    price = {m.id: view.world.cost(row, m) or 0 for m in taken}
    for m in sorted(taken, key=lambda m: (-price[m.id], -taken.index(m))):
        give = view.world.contribution(row, m)
        without = {d: v + give[d] for d, v in left.items()}
        if covered(without):
            left = without
            del price[m.id]
    return set(price)


@seeds
def test_each_taken_machine_was_the_cheapest_allowed_choice_at_its_turn(seeds: range) -> None:
    checked = 0
    for seed in seeds:
        view = seen(seed, plain=True)
        # What phase 2 moves afterwards hides what was missing at a row's turn.
        if not view.quiet():
            continue
        for row in view.rows:
            assert set(row.taken) == choices(view, row), (seed, row.position)
            checked += len(row.taken)
    assert checked >= len(seeds) // 4


@seeds
def test_each_machine_of_a_spread_need_was_the_cheapest_one_within_the_skew(seeds: range) -> None:
    checked = 0
    for seed in seeds:
        view = seen_spread(seed)
        if not view.quiet():
            continue
        for row in view.rows:
            assert set(row.taken) == choices(view, row), (seed, row.position)
            checked += len(row.taken)
    assert checked >= len(seeds) // 2


@seeds
def test_nothing_taken_is_redundant(seeds: range) -> None:
    for seed in seeds:
        view = seen(seed)
        for row in view.rows:
            if row.folded:
                continue
            moved = [m for m in view.held(row) if view.world.owner(m.stamp) is not row]
            held = [m for m in view.held(row) if m not in moved or view.quiet()]
            if row.is_gang:
                held = [m for m in held if view.world.domain_of(row, m) == row.domain]
            for gone in view.taken(row):
                rest = [m for m in view.taken(row) if m is not gone]
                left = less(view, row, wanted(row), [*held, *rest])
                assert not covered(left), (seed, row.position, gone.id)


def coming(view: Seen, row: Row) -> list[Machine]:
    """What is leaving or Draining for the row, in its domain if it has one."""
    return [
        m
        for m in view.machines.values()
        if m.leaving is not None
        and m.leaving.for_stamp is not None
        and m.leaving.for_stamp.key in row.keys
        and m.id not in view.world.claimed_by
        and m.state in (S.CONFIGURED, S.DRAINING)
        and view.world.usable(m)
        and view.world.matches(row, m)
        and (not row.is_gang or view.world.domain_of(row, m) == row.domain)
    ]


@seeds
def test_no_more_victims_are_taken_than_the_deficit_needs(seeds: range) -> None:
    for seed in seeds:
        view = seen(seed)
        for row in view.rows:
            picks = [view.machines[mid] for mid in row.picks]
            on_the_way = [m for m in coming(view, row) if m.id not in row.claims]
            for spared in picks:
                rest = [m for m in picks if m is not spared]
                left = less(view, row, view.deficit(row), [*on_the_way, *rest])
                assert not covered(left), (seed, row.position, spared.id)
