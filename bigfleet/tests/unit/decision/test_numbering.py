"""Numbers for rows, and values kept while what they were made of stays the same."""

from itertools import count

import numpy as np
import pytest

from bigfleet.decision.interning import Memo, distinct


def test_distinct_rows_are_numbered_in_ascending_order() -> None:
    first, number = distinct([np.array([2, 1, 2, 1]), np.array([7, 9, 5, 9])])
    assert (first.tolist(), number.tolist()) == ([1, 2, 0], [2, 0, 1, 0])


def test_equal_rows_are_one() -> None:
    first, number = distinct([np.array([4, 4]), np.array([0, 0])])
    assert (first.tolist(), number.tolist()) == ([0], [0, 0])


def test_no_rows_have_no_numbers() -> None:
    first, number = distinct([np.zeros(0, np.int64)])
    assert (len(first), len(number)) == (0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_numbers_are_those_of_sorted_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (int(rng.integers(1, 60)), int(rng.integers(1, 5))))
    # Large numbers, too: joining columns must not overflow.
    rows[:, 0] *= int(rng.choice([1, 2**60]))
    first, number = distinct(list(rows.T))
    expected, inverse = np.unique(rows, axis=0, return_inverse=True)
    assert rows[first].tolist() == expected.tolist()
    assert number.tolist() == inverse.reshape(-1).tolist()


def test_a_kept_value_is_made_once_for_the_same_things() -> None:
    kept, numbers = Memo[int](), count(1)
    thing, other = [1], [1]

    def value(of: object, plain: int) -> int:
        return kept.get((of,), (plain,), lambda: next(numbers))

    assert [value(thing, 1), value(thing, 1)] == [1, 1]
    # An equal object is another object, and another number is another number.
    assert [value(other, 1), value(other, 2), value(other, 2)] == [2, 3, 3]


def test_a_kept_value_knows_how_many_things_it_was_made_of() -> None:
    kept, thing = Memo[int](), object()
    assert kept.get((thing,), (), lambda: 1) == 1
    assert kept.get((thing, thing), (), lambda: 2) == 2
    assert kept.get((), (), lambda: 3) == 3
