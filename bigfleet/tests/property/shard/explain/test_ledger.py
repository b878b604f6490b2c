"""The ledger over generated cycles, against one that looks at a verdict at a time."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.shard.explain.ledger import Ledger
from fleets import NOW, Shape, case
from living import Living


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=4))
def test_entries_are_the_sums_of_unmet_rows(seeds: list[int]) -> None:
    living, ledger = Living(), Ledger()
    ages: dict[str, int] = {}
    for cycle, seed in enumerate(seeds):
        made = case(seed, Shape(needs=8, machines=6))
        living.facts, living.policy = made.facts, made.policy
        plan = living.plan(made.machines, made.needs, NOW)
        ledger.update(plan, 10.0 * cycle)
        missing: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        clusters: dict[str, set[str]] = defaultdict(set)
        for row in range(len(plan.verdicts)):
            if not plan.verdicts.satisfied[row]:
                asked = made.needs[plan.need_of(row)]
                entry = missing[asked.profile.fingerprint]
                clusters[asked.profile.fingerprint].add(asked.cluster)
                for name, amount in plan.missing(row).items():
                    entry[name] += amount
        ages = {key: ages.get(key, 0) + 1 for key in missing}
        reported = ledger.reported()
        assert {s.fingerprint: dict(s.deficit) for s in reported} == missing
        assert {s.fingerprint: set(s.clusters) for s in reported} == clusters
        assert {s.fingerprint: s.age_cycles for s in reported} == ages
        counts = ledger.counts()
        assert counts.total == sum(counts.by_priority) == sum(counts.by_age) == len(reported)
        order = [(-s.profile.priority, -s.age_cycles) for s in reported]
        assert order == sorted(order)
