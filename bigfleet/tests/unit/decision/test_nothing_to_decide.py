"""A fleet without demand, demand without a fleet, and neither are ordinary cycles."""

from __future__ import annotations

from dataclasses import replace

import pytest

import compare
import fleets


@pytest.mark.parametrize(("machines", "needs"), [(True, False), (False, True), (False, False)])
def test_an_empty_side_is_an_ordinary_cycle(machines: bool, needs: bool) -> None:
    for seed in range(8):
        case = fleets.case(seed)
        case = replace(
            case,
            machines=case.machines if machines else [],
            needs=case.needs if needs else [],
        )

        plan = compare.fast_plan(case)

        assert compare.differences(plan, compare.oracle_plan(case)) == []


def test_a_full_withdrawal_of_demand_reclaims_what_was_bound() -> None:
    case = replace(fleets.case(3), needs=[])

    kinds = {action.kind.title for action in compare.fast_plan(case)}

    assert kinds <= {"Reclaim", "Delete"}
