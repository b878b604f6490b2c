"""Hints of generated fleets, against a count of one machine after the other."""

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.model import LABEL_INSTANCE_TYPE, Machine, MachineState, Need, RequirementOperator
from bigfleet.shard.explain.hints import Hints
from fleets import NOW, Shape, case
from living import Living

S = MachineState
Said = dict[tuple[str, str], tuple[int, int, float]]


def expected(machines: list[Machine], needs: list[Need]) -> Said:
    said: Said = {}
    for need in needs:
        pins = [
            set(r.values)
            for r in need.profile.requirements
            if r.key == LABEL_INSTANCE_TYPE and r.operator is RequirementOperator.IN
        ]
        usable = [
            m
            for m in machines
            if not (m.excluded or m.reserved) and all(m.instance_type in values for values in pins)
        ]
        idle = [m.price_micro / 1e6 for m in usable if m.state is S.IDLE]
        to_be = [m for m in usable if m.state is S.SPECULATIVE]
        confidence = 4 if idle else 3 if to_be else 1
        cost = min(idle) if idle and pins else 0.0
        key = (need.cluster, need.profile.fingerprint)
        said[key] = (len(idle) + len(to_be), confidence, cost)
    return said


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=4))
def test_clusters_know_at_any_time_what_there_is(seeds: list[int]) -> None:
    living, hints = Living(), Hints(spacing_ns=0)
    known: Said = {}
    for seed in seeds:
        made = case(seed, Shape(needs=8))
        living.facts, living.policy = made.facts, made.policy
        plan = living.plan(made.machines, made.needs, NOW)
        connected = {need.cluster for need in made.needs}
        news: Said = {}
        for hint in hints.updates(plan.fleet, plan.demand, connected, NOW):
            update = hint.message.available_capacity
            key = (hint.cluster, hint.key.removeprefix("available:"))
            assert key not in news
            news[key] = (update.available_count, update.confidence, update.cost_per_hour)
        right = expected(made.machines, made.needs)
        assert all(known.get(key) != value for key, value in news.items())
        known = {key: value for key, value in {**known, **news}.items() if key in right}
        assert known == right
