"""Properties 2 and 3: more priority or machines never hurt, and no lower need stands in front."""

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from bigfleet.decision.policy import VOLUNTARY_GRACE_SECONDS
from bigfleet.model import HostRef, MachineState, Profile, Stamp
from compare import fast_plan
from fleets import Case, machine
from oracle.world import Row, covered
from seen import PLAIN, Seen, see, seen
from sizes import chunks, label

S = MachineState
TOP = 2_000_000
seeds = pytest.mark.parametrize("seeds", chunks(250, 50_000, 40, everything=1_000), ids=label)
pairs = pytest.mark.parametrize("seeds", chunks(125, 25_000, 25, everything=500), ids=label)


def has(view: Seen, row: Row) -> Fraction:
    """The share of its demand a row has, in the worst dimension."""
    missing = view.deficit(row)
    return min(
        (1 - Fraction(missing.get(d, 0), v) for d, v in row.need.aggregate.items() if v),
        default=Fraction(1),
    )


def row_of(view: Seen, need: int) -> Row:
    return next(row for row in view.rows if view.need_index(row) == need)


def robbed(view: Seen, row: Row) -> bool:
    """Phase 2 took machines from the row's cluster: what its rows lack now, they had before."""
    moved = any(
        view.plan.verdicts.victims[other.position] > len(other.picks)
        for other in view.rows
        if other.need.cluster == row.need.cluster
    )
    return moved or any(
        view.machines[mid].cluster == row.need.cluster for other in view.rows for mid in other.picks
    )


def raised(case: Case, index: int, priority: int) -> Case:
    """The case in which one need has had another priority all along, on its stamps too."""
    old = case.needs[index]
    p = old.profile
    profile = Profile.of(
        p.requirements, p.spread, priority, p.interruption, p.reclamation, p.tolerations
    )
    new = replace(old, profile=profile)

    def said(stamp: Stamp | None) -> Stamp | None:
        if stamp is None or stamp != Stamp.for_need(old, stamp.sequence):
            return stamp
        return Stamp.for_need(new, stamp.sequence)

    machines = [
        replace(
            m,
            stamp=said(m.stamp),
            leaving=m.leaving and replace(m.leaving, for_stamp=said(m.leaving.for_stamp)),
        )
        for m in case.machines
    ]
    needs = [new if i == index else need for i, need in enumerate(case.needs)]
    return replace(case, machines=machines, needs=needs)


@pairs
def test_raising_a_plain_needs_priority_never_leaves_it_with_less(seeds: range) -> None:
    for seed in seeds:
        view = seen(seed, plain=True)
        index = Random(seed).randrange(len(view.case.needs))
        # A priority no other row has: the row stays itself and merges with none.
        priority = view.case.needs[index].profile.priority + 1 + TOP * (seed % 2)
        case = raised(view.case, index, priority)
        after = see(case, fast_plan(case))
        before, now = row_of(view, index), row_of(after, index)
        if not robbed(after, now):
            assert has(after, now) >= has(view, before), (seed, index)


def first_user(view: Seen, case: Case, added: str) -> Row | None:
    """The first row in the order that could take the machine."""
    m = view.machines[added]
    for row in view.rows:
        if (
            not case.facts[row.need.cluster].blocked
            and view.world.may_place(row, m)
            and view.world.covers_unit(row, m)
            and view.world.offers_all(row, m)
            and view.world.cost(row, m) is not None
        ):
            return row
    return None


@pairs
def test_one_more_machine_never_leaves_the_first_need_that_can_use_it_with_less(
    seeds: range,
) -> None:
    for seed in seeds:
        before = seen(seed, plain=True)
        rng = Random(seed)
        new = machine(rng, 999, list(before.case.facts), [], PLAIN)
        state = rng.choice([S.IDLE, S.SPECULATIVE])
        new = replace(
            new, state=state, cluster="", leaving=None, stamp=None,
            excluded=False, reserved=False, backing_off=False,
            interruption_at_ns=0, not_ready_since_ns=0,
            host=HostRef("p", "new") if state is S.IDLE else None,
        )  # fmt: skip
        case = replace(before.case, machines=[*before.case.machines, new])
        after = see(case, fast_plan(case))
        user = first_user(after, case, new.id)
        if user is not None and not robbed(after, user):
            index = after.need_index(user)
            assert has(after, user) >= has(before, row_of(before, index)), (seed, index)


def still_lacks(view: Seen, row: Row) -> bool:
    """What is on its way to the row, and what it frees now, does not cover what it lacks."""
    left = view.deficit(row)
    coming = [
        m
        for m in view.machines.values()
        if m.leaving is not None
        and m.leaving.for_stamp is not None
        and m.leaving.for_stamp.key in row.keys
        and m.state in (S.CONFIGURED, S.DRAINING)
        and view.world.usable(m)
        and view.world.matches(row, m)
    ]
    for m in [*coming, *(view.machines[mid] for mid in row.picks)]:
        give = view.world.contribution(row, m)
        left = {d: v - give[d] for d, v in left.items()}
    return not covered(left)


def could_use(view: Seen, row: Row, mid: str) -> bool:
    m = view.machines[mid]
    return (
        view.world.usable(m)
        and view.world.may_place(row, m)
        and view.world.covers_unit(row, m)
        and view.world.offers_all(row, m)
        and view.world.cost(row, m) is not None
    )


@seeds
def test_no_need_is_unmet_while_a_lower_one_holds_what_it_could_use(seeds: range) -> None:
    for seed in seeds:
        view = seen(seed)
        for row in view.rows:
            blocked = view.case.facts[row.need.cluster].blocked
            constrained = row.is_gang or row.folded or row.need.profile.spread
            if blocked or constrained or robbed(view, row) or not still_lacks(view, row):
                continue
            for lower in view.rows[row.position + 1 :]:
                for mid in lower.claims:
                    if not could_use(view, row, mid):
                        continue
                    m = view.machines[mid]
                    # Bound machines are taken for strictly higher priority only; what is being
                    # created or configured is left alone, and so is what its drain gave back.
                    strictly = lower.need.profile.priority < row.need.profile.priority
                    assert mid not in lower.taken, (seed, row.position, mid)
                    if m.state is S.CONFIGURED and m.leaving is None:
                        assert not strictly, (seed, row.position, mid)


@seeds
def test_only_strictly_lower_needs_and_excess_are_preempted(seeds: range) -> None:
    for seed in seeds:
        view = seen(seed)
        for row in view.rows:
            for mid in row.picks:
                m = view.machines[mid]
                assert m.cluster != row.need.cluster, (seed, mid)
                owners = [r for r in view.rows if m.stamp is not None and m.stamp.key in r.keys]
                others = [r for r in view.rows if r.need.cluster == m.cluster and r not in owners]
                # With one possible holder in the cluster there is no doubt whose it was.
                if len(owners) == 1 and not others and owners[0].need.cluster == m.cluster:
                    least = min(owners[0].need.profile.priority, row.need.profile.priority)
                    excess = view.actions[mid].grace_seconds == VOLUNTARY_GRACE_SECONDS
                    assert excess or least < row.need.profile.priority, (seed, mid)
