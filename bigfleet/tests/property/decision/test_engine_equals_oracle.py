"""Property 11: fast engine and slow oracle give equal plans on every generated case."""

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from bigfleet.decision import Plan
from compare import differences, fast_plan, oracle_plan
from drawn import drawn_case
from fleets import Case, Shape
from fleets import case as case_of
from oracle import OraclePlan
from seen import mixed_case
from sizes import chunks, label
from variations import in_many_places, over_hosts

seeds = pytest.mark.parametrize("seeds", chunks(250, 50_000, 120, everything=1_000), ids=label)
MILLE = 1000


PLACES = Shape(machines=45, needs=4, limits=False)


@seeds
def test_the_fast_engine_and_the_oracle_give_equal_plans(seeds: range) -> None:
    compare((seed, mixed_case(seed)) for seed in seeds)


@pytest.mark.parametrize("seeds", chunks(40, 5_000, 40, everything=160), ids=label)
def test_they_agree_on_gangs_that_choose_among_many_places(seeds: range) -> None:
    compare((seed, in_many_places(case_of(seed, PLACES), Random(seed))) for seed in seeds)


@pytest.mark.parametrize("seeds", chunks(40, 5_000, 40, everything=160), ids=label)
def test_they_agree_on_needs_that_are_spread_over_hosts(seeds: range) -> None:
    compare((seed, over_hosts(mixed_case(seed), Random(seed))) for seed in seeds)


@pytest.mark.parametrize("seeds", chunks(40, 50_000, 60, everything=80), ids=label)
def test_they_agree_on_fleets_of_any_shape(seeds: range) -> None:
    compare((seed, drawn_case(seed)) for seed in seeds)


@pytest.mark.parametrize("seeds", chunks(40, 5_000, 40, everything=160), ids=label)
def test_they_agree_on_clusters_that_are_left_out(seeds: range) -> None:
    cases = [(seed, with_budget(drawn_or_mixed(seed), Random(seed))) for seed in seeds]
    compare(cases)
    frozen = [len(fast_plan(case).frozen) for _, case in cases[:20]]
    assert any(frozen)
    assert not all(frozen)


def drawn_or_mixed(seed: int) -> Case:
    return drawn_case(seed) if seed % 2 else mixed_case(seed)


def with_budget(case: Case, rng: Random) -> Case:
    """A budget that some of its clusters exceed, and perhaps one that is frozen by name."""
    clusters = sorted(case.facts)
    named = frozenset(rng.sample(clusters, 1)) if clusters and rng.random() < 0.3 else frozenset()
    most = rng.choice([0, 100, 300, 600, 1_000, 3_000, 10_000, 1_000_000])
    return replace(case, policy=replace(case.policy, max_work=most, frozen=named))


def compare(cases: Iterable[tuple[int, Case]]) -> None:
    failures = []
    for seed, case in cases:
        plan, expected = fast_plan(case), oracle_plan(case)
        found = differences(plan, expected) + explanations(plan, expected)
        failures += [f"seed {seed}: {line}" for line in found]
    assert not failures, "\n".join(failures)


def explanations(plan: Plan, expected: OraclePlan) -> list[str]:
    """Where the two disagree on what they tell people: freed capacity, domains and coverage."""
    found = []
    v = plan.verdicts
    for row, verdict in enumerate(expected.verdicts.values()):
        if bool(v.satisfiable[row]) != verdict.satisfiable:
            found.append(f"row {row} satisfiable: {bool(v.satisfiable[row])}")
        if verdict.satisfied == bool(v.unmet_since[row]):
            found.append(f"row {row} unmet since {v.unmet_since[row]}")
        states = {s: int(n) for s, n in enumerate(v.matching[row]) if n and 1 <= s < 8}
        if not verdict.satisfied and sorted(states.values()) != sorted(verdict.matching.values()):
            found.append(f"row {row} matching: {states} against {verdict.matching}")
        mine = [
            (plan.domain_names[int(v.domain_key[row])][d].replace("\x00", ","), int(m), bool(ok))
            for d, m, ok in zip(v.best[row], v.best_mille[row], v.best_ok[row], strict=True)
            if d >= 0
        ]
        theirs = [
            (",".join(domain), int(cover * MILLE), ok) for domain, cover, ok in verdict.candidates
        ]
        # Where a place is found, others are looked at only as far as they could have won.
        compared = 1 if verdict.satisfiable else len(theirs)
        if mine[:compared] != theirs[:compared]:
            found.append(f"row {row} candidates: {mine} against {theirs}")
        if bool(v.freed[row].any()) != bool(verdict.victims):
            found.append(f"row {row} freed {plan.freed(row)} by {verdict.victims} victims")
    return found
