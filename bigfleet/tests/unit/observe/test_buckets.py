"""Bounds of histograms: how many, how far apart, and every threshold among them."""

import itertools

import pytest

from bigfleet.observe.distribution import FINE, LONG, MEDIUM


@pytest.mark.parametrize(("bounds", "count"), [(FINE, 89), (MEDIUM, 57), (LONG, 34)])
def test_each_set_has_the_promised_number_of_rising_bounds(
    bounds: tuple[float, ...], count: int
) -> None:
    assert len(bounds) == count
    assert list(bounds) == sorted(set(bounds))


def widest(bounds: tuple[float, ...], low: float, high: float) -> float:
    inside = [bound for bound in bounds if low <= bound <= high]
    return max(after / before - 1 for before, after in itertools.pairwise(inside))


def test_neighbours_are_close() -> None:
    assert widest(FINE, 0.001, 30) < 0.146
    assert widest(MEDIUM, 0.001, 500) < 0.34


def test_every_gate_is_a_bound() -> None:
    assert {0.03, 0.05, 0.1, 0.25, 0.5, 5.0, 300.0} <= set(FINE)
    assert {0.05, 0.25, 0.5, 1.0, 1.5, 2.0, 5.0, 12.0, 15.0, 30.0, 600.0} <= set(MEDIUM)
    assert {15.0, 30.0, 60.0, 600.0, 3600.0, 7200.0} <= set(LONG)
