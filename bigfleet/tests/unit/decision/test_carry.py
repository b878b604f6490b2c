"""What one cycle leaves for the next: waits that double, drain times that are smoothed."""

import numpy as np
import pytest

from bigfleet.decision import Carry, ClockSet
from bigfleet.decision.policy import SECOND
from bigfleet.model import CapacityType

OFFERING = ("p", "t4", "z-1", CapacityType.SPOT)
OTHER = ("p", "t8", "z-1", CapacityType.SPOT)


def waits_after(failures: int) -> float:
    carry = Carry()
    for _ in range(failures):
        carry = carry.with_stock_out(OFFERING, now=0)
    return carry.stock_outs[OFFERING].wait / SECOND


def test_a_stock_out_cools_for_30_seconds_doubling_to_ten_minutes() -> None:
    assert [waits_after(n) for n in range(1, 8)] == [30, 60, 120, 240, 480, 600, 600]


def test_an_offering_is_out_of_the_pool_until_its_cooling_ends() -> None:
    carry = Carry().with_stock_out(OFFERING, now=1000)
    end = 1000 + 30 * SECOND
    assert carry.cooling(1000) == carry.cooling(end - 1) == {OFFERING}
    assert carry.cooling(end) == frozenset()


def test_a_clock_that_went_back_ends_a_back_off_instead_of_making_it_last() -> None:
    day = 86_400 * SECOND
    carry = Carry().with_stock_out(OFFERING, 2 * day).with_bootstrap_failure("c", 2 * day)
    assert carry.cooling(2 * day) == {OFFERING}
    assert carry.cooling(day) == frozenset()
    assert carry.backed_off(2 * day) == {"c"}
    assert carry.backed_off(day) == frozenset()


@pytest.mark.parametrize("by", [86_400 * SECOND, -86_400 * SECOND])
def test_a_clock_that_is_set_makes_nothing_older_or_younger(by: int) -> None:
    last, now = 10**6 * SECOND, 10**6 * SECOND + 20 * SECOND + by
    clock = ClockSet(by, last + by, now)
    since = np.array([0, last - 9, now - 5], np.int64)
    carry = Carry(unclaimed_since=since).with_stock_out(OFFERING, last)
    carry = carry.with_stock_out(OTHER, now - 5).with_bootstrap_failure("c", last).moved(clock)
    # The last one was noted when the clock was set already.
    assert carry.unclaimed_since.tolist() == [0, last - 9 + by, now - 5]
    assert carry.cooling(now) == {OFFERING, OTHER}
    assert carry.cooling(now + 10 * SECOND) == {OTHER}
    assert carry.cooling(now + 30 * SECOND) == frozenset()
    assert carry.backed_off(now) == frozenset()


def test_a_create_that_succeeds_starts_the_waits_again_for_that_offering_alone() -> None:
    carry = Carry().with_stock_out(OFFERING, 0).with_stock_out(OFFERING, 0).with_stock_out(OTHER, 0)
    carry = carry.with_stock(OFFERING)
    assert carry.cooling(0) == {OTHER}
    assert carry.with_stock_out(OFFERING, 0).stock_outs[OFFERING].wait == 30 * SECOND


def test_a_cluster_backs_off_for_10_seconds_doubling_to_ten_minutes() -> None:
    carry, waits = Carry(), []
    for _ in range(8):
        carry = carry.with_bootstrap_failure("c", now=7)
        waits.append((carry.bootstraps["c"].until - 7) // SECOND)
    assert waits == [10, 20, 40, 80, 160, 320, 600, 600]
    assert carry.backed_off(7 + 600 * SECOND - 1) == {"c"}
    assert carry.backed_off(7 + 600 * SECOND) == frozenset()


def test_a_cluster_that_delivers_again_is_no_longer_backed_off() -> None:
    carry = Carry().with_bootstrap_failure("c", 0).with_bootstrap_failure("d", 0)
    assert carry.with_bootstrap("c").backed_off(0) == {"d"}


def test_drain_times_are_smoothed_and_later_ones_weigh_more() -> None:
    carry = Carry().with_drain(OFFERING, 100.0)
    assert carry.drain_seconds == {OFFERING: 100.0}
    carry = carry.with_drain(OFFERING, 200.0).with_drain(OTHER, 5.0)
    assert carry.drain_seconds[OFFERING] == pytest.approx(130.0)
    assert carry.with_drain(OFFERING, 0.0).drain_seconds[OFFERING] == pytest.approx(91.0)
    assert carry.drain_seconds[OTHER] == 5.0


def test_a_carry_is_a_value_that_its_changes_leave_alone() -> None:
    carry = Carry()
    carry.with_stock_out(OFFERING, 0).with_bootstrap_failure("c", 0).with_drain(OFFERING, 1.0)
    assert not carry.stock_outs
    assert not carry.bootstraps
    assert not carry.drain_seconds
