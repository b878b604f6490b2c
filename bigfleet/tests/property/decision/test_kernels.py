"""Exact comparisons and the sorting kernel, against Python's own numbers and sort."""

from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from bigfleet.decision.kernels.exact import compare_fractions, compare_products
from bigfleet.decision.kernels.index_sort import sort_index

TOP = 2**63 - 1
EDGES = st.sampled_from([0, 1, 2, 2**30 - 1, 2**30, 2**31, 2**53 + 1, 2**60, 2**62, TOP - 1, TOP])
NUMBERS = EDGES | st.integers(0, TOP) | st.integers(0, 20)
POSITIVE = NUMBERS.map(lambda n: max(1, n))


def sign(number: Fraction | int) -> int:
    return (number > 0) - (number < 0)


@given(*[NUMBERS] * 6)
@example(TOP, TOP, TOP, TOP, TOP, TOP)
@example(TOP, TOP, TOP, TOP, TOP, TOP - 1)
@example(TOP, TOP - 1, 1, TOP - 1, TOP, 1)
def test_products_of_three_are_compared_exactly(
    a: int, b: int, c: int, d: int, e: int, f: int
) -> None:
    assert compare_products(a, b, c, d, e, f) == sign(a * b * c - d * e * f)


@given(NUMBERS, NUMBERS, st.integers(1, 2**20))
def test_products_that_differ_by_little_are_told_apart(a: int, b: int, step: int) -> None:
    larger = min(TOP, b + step)
    assert compare_products(a, b, 7, a, larger, 7) == sign(a * b - a * larger)
    assert compare_products(a, larger, 7, a, b, 7) == sign(a * larger - a * b)
    assert compare_products(a, b, 3, b, 3, a) == 0


@given(NUMBERS, POSITIVE, NUMBERS, POSITIVE)
@example(TOP, TOP - 1, TOP - 1, TOP - 2)
@example(0, 5, 0, 7)
def test_fractions_are_compared_exactly(n1: int, d1: int, n2: int, d2: int) -> None:
    assert compare_fractions(n1, d1, n2, d2) == sign(Fraction(n1, d1) - Fraction(n2, d2))


@given(NUMBERS, POSITIVE, st.integers(1, 1000))
def test_equal_fractions_are_equal_however_they_are_written(n: int, d: int, times: int) -> None:
    small_n, small_d = n // 1000, max(1, d // 1000)
    assert compare_fractions(small_n, small_d, small_n * times, small_d * times) == 0
    assert compare_fractions(n, d, n, d) == 0


KEYS = st.lists(
    st.tuples(
        st.integers(-3, 3), st.integers(-2, 2), st.integers(-2, 2) | st.integers(-(2**62), TOP)
    ),
    max_size=150,
)


@given(KEYS)
def test_the_index_is_sorted_by_three_keys_and_stable(keys: list[tuple[int, int, int]]) -> None:
    columns = [np.array([key[i] for key in keys] or [0], np.int64) for i in range(3)]
    index, spare = np.full(len(keys) + 3, -7, np.int64), np.zeros(len(keys) + 3, np.int64)
    sort_index(columns[0], columns[1], columns[2], index, spare, len(keys))
    assert index[: len(keys)].tolist() == sorted(range(len(keys)), key=keys.__getitem__)
    assert index[len(keys) :].tolist() == [-7, -7, -7]
