"""Every explanation of generated fleets holds: the named blockers are exact, and each remedy has
the effect that is printed. The slow oracle decides on values that were changed independently.
"""

from collections.abc import Sequence
from itertools import combinations

import pytest

from awkward import awkward_case
from bigfleet.decision import Reason
from bigfleet.explanation.blockers import Blocker, candidates
from bigfleet.explanation.supply import SupplyCounts
from bigfleet.model import MachineState, Need
from compare import oracle_plan
from explained import Told, changed, effect, met, situation_of, told_of, without
from fleets import Case
from oracle import OraclePlan
from sizes import chunks, label, many


@pytest.mark.parametrize("seeds", chunks(100, 1_000, 20), ids=label)
def test_blockers_are_exact_and_remedies_do_what_they_say(seeds: range) -> None:
    wrong = []
    for seed in seeds:
        case = awkward_case(seed)
        told_needs = told_of(case, most=many(2, 1_000, 2))
        plan = oracle_plan(case) if told_needs else None
        for told in told_needs:
            assert plan is not None
            found = [*wrong_blockers(case, told), *wrong_remedies(case, plan, told)]
            wrong += [f"seed {seed}, need {told.members}: {line}" for line in found]
    assert not wrong, "\n".join(wrong)


def wrong_blockers(case: Case, told: Told) -> list[str]:
    named, members = told.explanation.blockers, told.members
    found = []
    if named and not met(without(case, members, named), members):
        found.append(f"still unmet without {named}")
    for part in named if len(named) > 1 else ():
        if met(without(case, members, [part]), members):
            found.append(f"met without {part} alone")
    if not named:
        situation = situation_of(case)
        need = case.needs[members[0]]
        possible = candidates(situation, need, SupplyCounts(situation), Reason.NONE)
        for size in (1, 2):
            for some in combinations(possible, size):
                if asks_for_something(case, need, some) and met(
                    without(case, members, some), members
                ):
                    found.append(f"more than two are named, but met without {some}")
    return found


def asks_for_something(case: Case, need: Need, blockers: Sequence[Blocker]) -> bool:
    """Not so where all that is left out of it is on offer: then it is met by asking for nothing."""
    left_out = {blocker.dimension for blocker in blockers if blocker.dimension}
    asked = {name for name, amount in need.aggregate.items() if amount}
    return not asked <= left_out or not any(
        m.effective_allocatable.get(name)
        for m in case.machines
        for name in left_out
        if m.state is not MachineState.FAILED and not m.is_kept_out and not m.interruption_at_ns
    )


def wrong_remedies(case: Case, plan: OraclePlan, told: Told) -> list[str]:
    found = []
    for tried in told.explanation.remedies:
        after = case
        for change in tried.remedy.changes:
            after = changed(after, told.members, change)
        expected = effect(case, plan, after, told.members)
        if tried.effect != expected:
            found.append(f"{tried.remedy}: printed {tried.effect}, but {expected}")
    return found
