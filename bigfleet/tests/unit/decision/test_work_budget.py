"""Which clusters a cycle leaves out, what happens to them, and how a decision is ended early."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigfleet.decision import ActionKind, CancelWord, DecisionCancelledError, Engine, Policy
from bigfleet.decision.work_budget import cluster_work, frozen_by_work, heaviest_first
from bigfleet.inventory import Inventory
from bigfleet.model.columns import Demand, Symbols
from compare import fast_plan
from fleets import NOW, Shape
from fleets import case as case_of

GIVING = {ActionKind.BOOTSTRAP, ActionKind.PROVISION, ActionKind.KEEP}
WEIGHTS = st.dictionaries(st.text("abc", max_size=3), st.integers(0, 1_000), max_size=8)


@given(WEIGHTS, st.integers(0, 4_000))
def test_the_heaviest_are_left_out_until_the_rest_fits_and_no_more(
    weights: dict[str, int], most: int
) -> None:
    frozen = frozen_by_work(weights, most)
    rest = sum(work for cluster, work in weights.items() if cluster not in frozen)
    assert rest <= most or not set(weights) - frozen
    if frozen:
        last = heaviest_first({cluster: weights[cluster] for cluster in frozen})[-1]
        assert rest + weights[last] > most
        left = (weights[cluster] for cluster in weights if cluster not in frozen)
        assert all(work <= weights[last] for work in left)


def test_of_equal_ones_the_smaller_id_goes_first() -> None:
    assert frozen_by_work({"b": 5, "a": 5, "c": 5}, 10) == {"a"}


def test_a_cluster_that_owns_a_large_fleet_is_within_the_default_budget() -> None:
    assert cluster_work(20_000, 2_000, 500, 500_000) < Policy().max_work


def test_a_frozen_cluster_keeps_its_machines_and_its_rows_are_withheld() -> None:
    for seed in range(20):
        case = case_of(seed, Shape())
        for cluster in case.facts:
            policy = replace(case.policy, frozen=frozenset({cluster}))
            plan = fast_plan(replace(case, policy=policy))
            assert plan.frozen == plan.carry.frozen == {cluster}
            mine = [action for action in plan if action.cluster == cluster]
            assert not {action.kind for action in mine} & GIVING
            assert "no need of its cluster claims it" not in {action.reason for action in mine}
            rows = sum(need.cluster == cluster for need in case.needs)
            assert (0 if plan.withheld is None else len(plan.withheld)) == rows
            assert len(plan.demand) == len(case.needs) - rows


def test_a_cancelled_decision_raises_and_leaves_no_trace() -> None:
    case = case_of(7, Shape())
    symbols = Symbols()
    inventory = Inventory(symbols)
    inventory.load(case.machines)
    demand = Demand.of(case.needs, case.facts, symbols)
    word = CancelWord()
    engine = Engine(cancel=word)
    word.set()
    with pytest.raises(DecisionCancelledError, match="nothing of it is used"):
        engine.decide(inventory.snapshot(), demand, case.policy, now=NOW)
    word.clear()
    after = engine.decide(inventory.snapshot(), demand, case.policy, now=NOW)
    fresh = Engine().decide(inventory.snapshot(), demand, case.policy, now=NOW)
    assert list(after) == list(fresh)


def test_a_decision_that_is_cancelled_at_any_step_raises_and_leaves_no_trace() -> None:
    case = case_of(7, Shape())
    symbols = Symbols()
    inventory = Inventory(symbols)
    inventory.load(case.machines)
    demand = Demand.of(case.needs, case.facts, symbols)
    expected = list(Engine().decide(inventory.snapshot(), demand, case.policy, now=NOW))
    steps = 0
    while True:
        word = WordThatIsSetAfter(steps)
        engine = Engine(cancel=word)
        try:
            engine.decide(inventory.snapshot(), demand, case.policy, now=NOW)
            break
        except DecisionCancelledError:
            word.clear()
        after = engine.decide(inventory.snapshot(), demand, case.policy, now=NOW)
        assert list(after) == expected
        steps += 1
    assert steps >= 5


class WordThatIsSetAfter(CancelWord):
    """It is set when it has been looked at so often."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._looks = looks

    def check(self) -> None:
        if self._looks == 0:
            self.set()
        self._looks -= 1
        super().check()
