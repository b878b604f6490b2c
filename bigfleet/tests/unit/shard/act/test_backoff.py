"""Failures: classes, waits that double, and what the next decision is told."""

import random

import pytest

from bigfleet.decision import Carry
from bigfleet.decision.policy import SECOND
from bigfleet.model import CapacityType
from bigfleet.shard.act.backoff import (
    BackOffs,
    BackoffTable,
    BootstrapEnded,
    BootstrapFailed,
    DrainEnded,
    Stock,
    StockOut,
    Wait,
    remembered,
)
from bigfleet.shard.providers.create_failures import CreateFailure, class_of_error
from clocks import HandClock
from executing_values import machine

OFFERING = ("p", "t", "z", CapacityType.SPOT)
F = CreateFailure


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("OutOfCapacity: no spot here", F.OUT_OF_CAPACITY),
        ("QuotaExceeded: 10 of 10", F.QUOTA),
        ("Throttled: slow down", F.THROTTLED),
        ("Unauthorized: key expired", F.BAD_REQUEST),
        ("InvalidRequest: no such type", F.BAD_REQUEST),
        ("Timeout: 300 s", F.UNAVAILABLE),
        ("HostLost: gone", F.UNAVAILABLE),
        ("Gremlins: everywhere", F.UNAVAILABLE),
        ("OutOfCapacity", F.OUT_OF_CAPACITY),
        ("", F.UNAVAILABLE),
    ],
)
def test_the_first_word_is_the_class(text: str, failure: CreateFailure) -> None:
    assert class_of_error(text) is failure


def test_waits_double_are_spread_and_start_over_after_a_success() -> None:
    clock = HandClock()
    waits = BackOffs(clock.monotonic, random.Random(3))
    wait = Wait(10.0, 60.0)
    lengths = [waits.failed("k", wait) for _ in range(5)]
    for length, middle in zip(lengths, (10, 20, 40, 60, 60), strict=True):
        assert 0.8 * middle <= length <= 1.2 * middle
    assert len(set(lengths)) == 5
    waits.succeeded("k")
    assert waits.failed("k", wait) <= 12.0


def test_a_key_is_kept_off_until_its_wait_is_over() -> None:
    clock = HandClock()
    waits = BackOffs(clock.monotonic, random.Random(3))
    length = waits.failed("k", Wait(10.0, 60.0))
    assert waits.waiting("k")
    assert waits.kept_off() == ["k"]
    clock.advance(length)
    assert not waits.waiting("k")
    assert waits.kept_off() == []


def test_what_failed_long_ago_is_forgotten() -> None:
    clock = HandClock()
    waits = BackOffs(clock.monotonic, random.Random(3))
    for number in range(1024):
        waits.failed(number, Wait(1.0, 2.0))
    clock.advance(100)
    waits.failed("new", Wait(1.0, 2.0))
    assert waits.kept_off() == ["new"]
    assert waits.failed(5, Wait(1.0, 2.0)) <= 1.2


def test_creates_that_fail_together_are_one_stock_out() -> None:
    events = [StockOut(OFFERING, 10 * SECOND + n) for n in range(50)]
    carry = remembered(Carry(), events)
    assert carry.stock_outs[OFFERING].wait == 30 * SECOND
    again = remembered(carry, [StockOut(OFFERING, 100 * SECOND)])
    assert again.stock_outs[OFFERING].wait == 60 * SECOND


def test_a_create_begun_before_the_stock_out_does_not_end_it() -> None:
    out = StockOut(OFFERING, 10 * SECOND)
    carry = remembered(Carry(), [out, Stock(OFFERING, 11 * SECOND)])
    assert carry.cooling(12 * SECOND) == {OFFERING}
    assert OFFERING not in remembered(carry, [Stock(OFFERING, 41 * SECOND)]).stock_outs


def test_bootstraps_that_fail_together_are_one_failure_and_a_blob_ends_it() -> None:
    events = [BootstrapFailed("c-1", 10 * SECOND + n) for n in range(50)]
    carry = remembered(Carry(), events)
    assert carry.bootstraps["c-1"].wait == 10 * SECOND
    assert not remembered(carry, [BootstrapEnded("c-1")]).bootstraps


def test_what_fails_after_the_clock_went_back_counts_again() -> None:
    late, early = 86_400 * SECOND, 10 * SECOND
    carry = Carry()
    for at in (late, early):
        carry = remembered(carry, [StockOut(OFFERING, at), BootstrapFailed("c-1", at)])
    assert carry.cooling(early) == {OFFERING}
    assert carry.backed_off(early) == {"c-1"}


def test_drain_times_reach_the_carry() -> None:
    carry = remembered(Carry(), [DrainEnded(OFFERING, 90.0)])
    assert carry.drain_seconds == {OFFERING: 90.0}


@pytest.mark.parametrize("failure", list(CreateFailure))
def test_which_failures_take_their_offering_out_of_the_pool(failure: CreateFailure) -> None:
    failures = BackoffTable(HandClock(), random.Random(1))
    failures.create_failed(machine("m"), failure, "text")
    cools = failure in (F.OUT_OF_CAPACITY, F.QUOTA, F.BAD_REQUEST)
    assert bool(failures.take_events()) is cools
    assert failures.waiting() == {"m"}
    assert not failures.take_events()


def test_a_later_success_is_told_only_of_offerings_that_were_out() -> None:
    failures = BackoffTable(HandClock(), random.Random(1))
    failures.created(machine("m"))
    assert not failures.take_events()
    failures.create_failed(machine("m"), F.OUT_OF_CAPACITY, "none")
    failures.created(machine("m"))
    kinds = [type(event) for event in failures.take_events()]
    assert kinds == [StockOut, Stock]
    assert not failures.waiting()
