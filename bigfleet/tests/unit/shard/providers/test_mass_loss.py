"""Many machines that vanish at once are believed gone at the third full List, not before."""

import numpy as np
import pytest

from bigfleet.shard.providers.mass_loss import LossVerdict, MassLoss, is_mass_loss


def judged(
    rule: MassLoss, absent: list[int], bound: int, unbound: list[int] | None = None
) -> LossVerdict:
    rows = np.array([*absent, *(unbound or [])], np.int64)
    is_bound = np.arange(len(rows)) < len(absent)
    return rule.judge(rows, is_bound, bound)


@pytest.mark.parametrize(
    ("absent", "bound", "is_mass"),
    [
        (30, 100, False),
        (31, 100, True),
        (9, 9, False),
        (10, 10, True),
        (10, 33, True),
        (0, 0, False),
    ],
)
def test_too_many_is_above_three_tenths_and_at_least_ten(
    absent: int, bound: int, is_mass: bool
) -> None:
    assert is_mass_loss(absent, bound) is is_mass


def test_a_few_are_believed_at_once() -> None:
    rule = MassLoss()
    assert judged(rule, [3, 4], bound=100).gone.tolist() == [3, 4]
    assert rule.holding == 0


def test_many_are_held_twice_and_believed_the_third_time() -> None:
    rule, many = MassLoss(), list(range(60))
    for _ in range(2):
        verdict = judged(rule, many, bound=100, unbound=[70])
        assert len(verdict.gone) == 0
        assert rule.holding == len(verdict.held) == 61
    assert judged(rule, many, bound=100, unbound=[70]).gone.tolist() == [*many, 70]
    assert rule.holding == 0


def test_one_that_comes_back_in_between_starts_from_the_beginning() -> None:
    rule, many = MassLoss(), list(range(60))
    judged(rule, many, bound=100)
    judged(rule, many[1:], bound=100)
    third = judged(rule, many, bound=100)
    assert third.gone.tolist() == many[1:]
    assert third.held.tolist() == [0]


def test_when_they_are_back_the_next_time_counts_again() -> None:
    rule, many = MassLoss(), list(range(60))
    judged(rule, many, bound=100)
    judged(rule, many, bound=100)
    assert judged(rule, [], bound=100).gone.tolist() == []
    assert judged(rule, many, bound=100).gone.tolist() == []
    assert rule.holding == 60


def test_those_still_missing_when_most_are_back_are_believed_at_their_third_list() -> None:
    # That others came back says that they were out of sight, not that these are gone.
    rule = MassLoss()
    judged(rule, list(range(60)), bound=100)
    assert judged(rule, [7, 8], bound=100).gone.tolist() == []
    assert rule.holding == 2
    assert judged(rule, [7, 8], bound=100).gone.tolist() == [7, 8]
    assert rule.holding == 0


def test_a_few_that_were_not_held_are_believed_at_once_beside_held_ones() -> None:
    rule = MassLoss()
    judged(rule, list(range(60)), bound=100)
    verdict = judged(rule, [90, 7, 8, 91], bound=100)
    assert (verdict.gone.tolist(), verdict.held.tolist()) == ([90, 91], [7, 8])
    third = judged(rule, [7], bound=98)
    assert (third.gone.tolist(), third.held.tolist()) == ([7], [])


def test_many_more_are_held_beside_held_ones_from_their_own_first_list() -> None:
    rule, first = MassLoss(), list(range(40))
    judged(rule, first, bound=100)
    judged(rule, first[:5], bound=100)
    verdict = judged(rule, [*first[:5], *range(50, 90)], bound=100)
    assert (verdict.gone.tolist(), verdict.held.tolist()) == (first[:5], list(range(50, 90)))
