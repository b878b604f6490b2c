"""Creates that fail again and again: when a run begins, becomes a habit, and ends."""

from __future__ import annotations

import random

import pytest

from bigfleet.model import CapacityType
from bigfleet.shard.act.backoff import BackoffTable
from bigfleet.shard.providers.create_failures import CreateFailure
from bigfleet.shard.providers.create_streaks import FORGOTTEN_SECONDS, CreateStreaks, Run
from clocks import HandClock
from executing_values import machine

HERE = ("p", "t", "z", CapacityType.SPOT)
THERE = ("p", "t", "elsewhere", CapacityType.SPOT)
F = CreateFailure


class World:
    """Creates of machines, one after the other."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.failing = CreateStreaks(self.clock.monotonic)

    def begins(self, *machines: str) -> None:
        for name in machines:
            self.failing.begun(name, HERE)

    def fails(self, *machines: str, cause: CreateFailure = F.UNAVAILABLE) -> None:
        for name in machines:
            self.failing.failed(name, HERE, cause, f"{cause}: {name}")

    def tries(self, *machines: str) -> None:
        """Later, and in vain."""
        self.clock.advance(10)
        self.begins(*machines)
        self.fails(*machines)

    @property
    def in_vain(self) -> bool:
        return self.failing.trouble([]).in_vain(HERE)


def test_without_failures_there_is_no_trouble() -> None:
    world = World()
    world.begins("a")
    world.failing.created("a", HERE)
    assert not world.failing.trouble([])
    assert not world.failing.trouble(["p"])


def test_one_failure_may_be_a_moments() -> None:
    world = World()
    world.tries("a")
    trouble = world.failing.trouble([])
    assert trouble.runs == {HERE: Run(F.UNAVAILABLE, "unavailable: a")}
    assert not world.in_vain


def test_what_is_tried_after_a_failure_and_fails_too_makes_a_habit() -> None:
    world = World()
    world.tries("a")
    world.tries("b")
    assert world.in_vain
    world.clock.advance(10)
    world.begins("c", "d")
    trouble = world.failing.trouble([])
    assert trouble.retries == {"c", "d"}
    assert trouble.of(HERE) == Run(F.UNAVAILABLE, "unavailable: b", habit=True)
    assert trouble.of(THERE) is None
    assert not trouble.in_vain(THERE)


def test_what_was_begun_together_fails_as_one() -> None:
    world = World()
    world.begins("a", "b")
    world.fails("a")
    world.begins("c")
    world.fails("b", "c")
    assert not world.in_vain


def test_creates_begun_before_the_run_are_no_part_of_it() -> None:
    world = World()
    world.begins("old", "older")
    world.tries("a")
    world.fails("older")
    assert not world.in_vain
    world.tries("b")
    assert world.failing.trouble([]).retries == frozenset()
    world.failing.created("old", HERE)
    assert world.in_vain


def test_a_success_after_the_first_failure_ends_the_run() -> None:
    world = World()
    world.tries("a")
    world.tries("b")
    world.clock.advance(10)
    world.begins("c")
    world.failing.created("c", HERE)
    assert not world.failing.trouble([])


def test_a_run_is_told_by_its_last_failure() -> None:
    world = World()
    world.tries("a")
    world.fails("b", cause=F.QUOTA)
    run = world.failing.trouble([]).of(HERE)
    assert run is not None
    assert (run.cause, run.text) == (F.QUOTA, "quota: b")


def test_a_run_that_is_not_continued_is_forgotten() -> None:
    world = World()
    world.tries("a")
    world.tries("b")
    world.clock.advance(FORGOTTEN_SECONDS)
    assert world.in_vain
    world.clock.advance(1)
    assert not world.failing.trouble([])


def test_a_provider_that_throttles_gets_no_creates_of_any_offering() -> None:
    clock = HandClock()
    failures = BackoffTable(clock, random.Random(1))
    failures.create_failed(machine("m"), F.THROTTLED, "Throttled: slow down")
    trouble = failures.trouble()
    assert trouble.in_vain(HERE)
    assert trouble.in_vain(THERE)
    assert trouble.of(THERE) == Run(F.THROTTLED, "Throttled: slow down")
    clock.advance(3)
    assert not failures.trouble().in_vain(HERE)
    assert failures.trouble().of(THERE) is None


@pytest.mark.parametrize("failure", list(CreateFailure))
def test_every_class_of_failure_is_remembered_with_its_words(failure: CreateFailure) -> None:
    failures = BackoffTable(HandClock(), random.Random(1))
    failures.create_failed(machine("m"), failure, "what it said")
    assert failures.trouble().of(HERE) == Run(failure, "what it said")
