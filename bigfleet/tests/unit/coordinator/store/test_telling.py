"""What is counted of a store's calls, and who is told who leads."""

from __future__ import annotations

import asyncio

import pytest

from bigfleet.coordinator.store.call_metrics import StoreCallMeter, reason_of
from bigfleet.coordinator.store.errors import (
    CorruptStoreError,
    DeposedError,
    StoreConflictError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from bigfleet.coordinator.store.interface import Leader
from bigfleet.coordinator.store.leaders import Leaders
from clocks import HandClock


class Counts:
    def __init__(self) -> None:
        self.seen: list[tuple[object, ...]] = []

    def store_call(self, op: str, seconds: float) -> None:
        self.seen.append((op, seconds))

    def store_error(self, op: str, reason: str) -> None:
        self.seen.append((op, reason))

    def store_term(self, term: int) -> None:
        self.seen.append((term,))


def fail(clock: HandClock, error: StoreError) -> None:
    clock.advance(0.5)
    raise error


def test_a_call_is_counted_with_its_time_whatever_comes_of_it() -> None:
    counts, clock = Counts(), HandClock()
    counting = StoreCallMeter(counts, clock)
    with counting("txn"):
        clock.advance(0.25)
    with pytest.raises(StoreConflictError), counting("txn"):
        fail(clock, StoreConflictError("no"))
    assert counts.seen == [("txn", 0.25), ("txn", "conflict"), ("txn", 0.5)]


def test_every_error_has_a_reason() -> None:
    late = StoreUnavailableError("late")
    late.__cause__ = TimeoutError()
    errors = [
        *(StoreConflictError("x"), DeposedError("x"), StoreFullError("x")),
        *(StoreUnavailableError("x"), late, CorruptStoreError("x")),
    ]
    reasons = [reason_of(error) for error in errors]
    assert reasons == ["conflict", "conflict", "no_space", "unavailable", "timeout", "other"]


async def test_every_watcher_hears_every_change_once() -> None:
    leaders = Leaders()
    first, second = leaders.changes(), leaders.changes()
    assert (await anext(first), await anext(second)) == (None, None)
    one, two = Leader("a", 1), Leader("b", 2)
    for leader in (one, one, two, None):
        leaders.show(leader)
    for watcher in (first, second):
        assert [await anext(watcher) for _ in range(3)] == [one, two, None]
    waiting = asyncio.ensure_future(anext(first))
    leaders.show(one)
    assert await waiting == one


def test_old_news_do_not_undo_newer_ones() -> None:
    leaders = Leaders()
    one, two = Leader("a", 9), Leader("b", 11)
    news = [(one, 9), (None, 8), (None, 10), (two, 11), (None, 0), (two, 11)]
    shown = []
    for leader, revision in news:
        leaders.show(leader, revision)
        shown.append(leaders.current)
    assert shown == [one, one, None, two, None, two]
