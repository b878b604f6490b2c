"""What is shown of generated cycles whose Creates fail, against machines counted one at a time."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.decision import ActionKind, Plan, Reason
from bigfleet.model import Machine, MachineState, Need
from bigfleet.shard.act.backoff import offering_of
from bigfleet.shard.explain.failing_creates import FailingCreates
from bigfleet.shard.providers.create_failures import CreateFailure
from bigfleet.shard.providers.create_streaks import Run, Trouble
from fleets import NOW, Case, Shape, case
from living import Living

S = MachineState


def trouble_of(rng: Random, made: Case) -> Trouble:
    """Some offerings fail, once or as a habit, and some of what is being created is a retry."""
    offerings = sorted({offering_of(m) for m in made.machines})
    causes = list(CreateFailure)
    runs = {
        o: Run(rng.choice(causes), "", rng.random() < 0.7) for o in offerings if rng.random() < 0.6
    }
    habits = {o for o, run in runs.items() if run.habit}
    begun = [m.id for m in made.machines if m.state is S.CREATING and offering_of(m) in habits]
    return Trouble(runs, retries=frozenset(m for m in begun if rng.random() < 0.7))


def in_vain(plan: Plan, made: Case, trouble: Trouble) -> set[str]:
    ordered = {a.machine for a in plan if a.kind is ActionKind.PROVISION}
    return {
        m.id
        for m in made.machines
        if m.id in trouble.retries or (m.id in ordered and trouble.in_vain(offering_of(m)))
    }


def left(asked: Need, machines: list[Machine], overhead: dict[str, int]) -> dict[str, int]:
    """What machines leave of a need that is on its own."""
    names = {*asked.aggregate, *asked.min_unit}
    unit = {name: amount for name, amount in asked.min_unit.items() if amount}
    gives = [
        {n: max(0, m.effective_allocatable.get(n, 0) - overhead.get(n, 0)) for n in names}
        for m in machines
    ]
    times = max((asked.aggregate.get(n, 0) // amount for n, amount in unit.items()), default=0)
    if times and all(asked.aggregate.get(n, 0) == times * unit.get(n, 0) for n in names):
        times -= sum(min(g[n] // amount for n, amount in unit.items()) for g in gives)
        missing = {n: times * amount for n, amount in unit.items()}
    else:
        missing = {n: a - sum(g[n] for g in gives) for n, a in asked.aggregate.items()}
    return {n: amount for n, amount in missing.items() if amount > 0}


@given(st.integers(0, 100_000))
def test_what_is_shown_is_what_is_there_without_the_creates_that_fail(seed: int) -> None:
    made = case(seed, Shape(needs=8, machines=30))
    living = Living(made.policy, made.facts)
    plan = living.plan(made.machines, made.needs, NOW)
    trouble = trouble_of(Random(seed), made)
    ids = list(plan.fleet.ids)
    told = FailingCreates().shown(plan, trouble, ids.index)
    again = FailingCreates().shown(plan, trouble, ids.index)
    v, shown = plan.verdicts, told.plan.verdicts
    assert (told.cause == again.cause).all()
    assert (told.plan.actions, told.plan.claimed) == (plan.actions, plan.claimed)
    assert told.plan.carry is plan.carry
    assert (shown.deficit >= v.deficit).all()
    vain = in_vain(plan, made, trouble)
    by_id = {m.id: m for m in made.machines}
    for row in range(len(v)):
        mine = [by_id[ids[m]] for m in (plan.claimed == row).nonzero()[0].tolist()]
        if not any(m.id in vain for m in mine):
            assert shown.satisfied[row] == v.satisfied[row]
            assert (shown.deficit[row] == v.deficit[row]).all()
        assert shown.satisfied[row] == (not told.plan.missing(row))
        assert (told.run(row) is None) or not shown.satisfied[row]
        if not shown.satisfied[row]:
            assert told.plan.reason(row) is not Reason.NONE
        if v.need[row] >= 0 and v.satisfied[row]:
            asked = made.needs[plan.need_of(row)]
            overhead = dict(made.facts[asked.cluster].overhead)
            counted = [m for m in mine if m.id not in vain]
            assert told.plan.missing(row) == left(asked, counted, overhead)
