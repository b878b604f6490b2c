"""Long tests begin first, each on a worker of its own, and no test is lost by ordering them."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from long_tests import spread_long_tests


@dataclass(frozen=True)
class FakeTest:
    """A test by number."""

    number: int
    is_long: bool

    def get_closest_marker(self, name: str) -> object:
        return name if self.is_long and name == "long" else None


def made(kinds: list[bool]) -> list[FakeTest]:
    return [FakeTest(number, is_long) for number, is_long in enumerate(kinds)]


@given(st.lists(st.booleans()), st.integers(1, 9))
def test_every_test_is_there_once_and_short_ones_keep_their_order(
    kinds: list[bool], workers: int
) -> None:
    tests = made(kinds)
    ordered = spread_long_tests(tests, workers)
    assert sorted(ordered, key=lambda test: test.number) == tests
    short = [test.number for test in ordered if not test.is_long]
    assert short == sorted(short)


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_every_worker_begins_with_a_long_one(workers: int) -> None:
    tests = made([number % 25 == 24 for number in range(100)])
    ordered = spread_long_tests(tests, workers)
    stretch = -(-len(tests) // workers)
    assert all(test.is_long for test in ordered[::stretch])
