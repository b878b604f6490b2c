"""Property 12: one odd row, that no machine can serve, changes nothing for the others."""

from dataclasses import replace
from random import Random

import pytest

from bigfleet.decision import Plan
from bigfleet.model import Need, Profile, Requirement, RequirementOperator
from compare import fast_plan, stamps_of
from fleets import RACK, ZONE, Case, Shape
from fleets import case as case_of
from seen import mixed_case, seen
from sizes import chunks, label

seeds = pytest.mark.parametrize("seeds", chunks(100, 20_000, 30, everything=400), ids=label)
GROUP = "odd"
UNHOLDABLE = ("giant", "nowhere")
ODD = (*UNHOLDABLE, "unknown", "gang")
UNBOUND = Shape(machines=24, needs=8, bound=False)


def odd(rng: Random, cluster: str, kinds: tuple[str, ...] = ODD) -> Need:
    """A pod or a gang too large for every machine or place, or a dimension that no machine has."""
    priority = rng.choice([-5, 100, 5_000_000])
    profile = Profile.of(priority=priority)
    unit = {"cpu": 1_000, "memory": 1_000}
    kind = rng.choice(kinds)
    if kind == "giant":
        unit = {"cpu": 500_000, "memory": 1_000}
        return Need(cluster, profile, {d: 3 * v for d, v in unit.items()}, unit, GROUP)
    if kind == "unknown":
        return Need(cluster, profile, {**unit, "fpga": 2_000}, {**unit, "fpga": 1_000}, GROUP)
    if kind == "nowhere":
        wish = [Requirement.of(ZONE, RequirementOperator.IN, ["z-nowhere"])]
        return Need(cluster, Profile.of(wish, priority=priority), unit, unit, GROUP)
    wish = [Requirement.of(rng.choice([RACK, ZONE]), RequirementOperator.SAME)]
    aggregate = {d: 5_000 * v for d, v in unit.items()}
    return Need(cluster, Profile.of(wish, priority=priority), aggregate, unit, GROUP)


def outcome(plan: Plan, case: Case) -> tuple[object, ...]:
    """Everything a plan says about needs other than the odd one."""
    actions = {(a.kind, a.machine, a.cluster, a.grace_seconds) for a in plan}
    stamps, meant = stamps_of(plan)
    verdicts = {}
    for row in range(len(plan.verdicts)):
        need = case.needs[plan.need_of(row)]
        if need.group == GROUP:
            continue
        v = plan.verdicts
        verdicts[need.cluster, need.key] = (
            bool(v.satisfied[row]), int(v.claimed[row]), plan.domain(row), plan.reason(row),
            int(v.from_idle[row]), int(v.from_speculative[row]), int(v.victims[row]),
        )  # fmt: skip
    return actions, stamps, meant, verdicts


@seeds
def test_an_odd_row_of_another_cluster_changes_nothing(seeds: range) -> None:
    for seed in seeds:
        case = mixed_case(seed)
        with_odd = replace(case, needs=[*case.needs, odd(Random(seed), "c-odd")])
        plan, other = seen(seed).plan, fast_plan(with_odd)
        assert outcome(other, with_odd) == outcome(plan, case), seed
        assert "c-odd" not in {a.cluster for a in other}, seed


@seeds
def test_a_pod_no_machine_holds_or_matches_changes_nothing_in_its_own_cluster(seeds: range) -> None:
    for seed in seeds:
        case, rng = mixed_case(seed), Random(seed)
        row = odd(rng, rng.choice(case.needs).cluster, UNHOLDABLE)
        with_odd = replace(case, needs=[*case.needs, row])
        assert outcome(fast_plan(with_odd), with_odd) == outcome(seen(seed).plan, case), seed


@seeds
def test_any_odd_row_changes_nothing_where_its_cluster_has_nothing_to_credit(seeds: range) -> None:
    for seed in seeds:
        case, rng = case_of(seed, UNBOUND), Random(seed)
        row = odd(rng, rng.choice(case.needs).cluster)
        with_odd = replace(case, needs=[*case.needs, row])
        assert outcome(fast_plan(with_odd), with_odd) == outcome(fast_plan(case), case), seed
