"""Counts every call to a store: how long it took, and why it failed. The same for every engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bigfleet.coordinator.store.errors import (
    DeposedError,
    StoreConflictError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from bigfleet.coordinator.store.interface import StoreCounts
from bigfleet.observe.process import Clock


class NoStoreCounts:
    """For tools that show no metrics."""

    def store_call(self, op: str, seconds: float) -> None:
        """Not counted."""

    def store_error(self, op: str, reason: str) -> None:
        """Not counted."""

    def store_term(self, term: int) -> None:
        """Not counted."""


class StoreCallMeter:
    """`with counting("txn"): ...` counts what happens inside."""

    def __init__(self, counts: StoreCounts, clock: Clock) -> None:
        self._counts = counts
        self._clock = clock

    @contextmanager
    def __call__(self, op: str) -> Iterator[None]:
        began = self._clock.monotonic()
        try:
            yield
        except StoreError as error:
            self._counts.store_error(op, reason_of(error))
            raise
        finally:
            self._counts.store_call(op, self._clock.monotonic() - began)

    def term(self, term: int) -> None:
        """The store's own consensus term, as an answer said it."""
        self._counts.store_term(term)


def reason_of(error: StoreError) -> str:
    """The label of an error. A lost election is a conflict: another replica wrote."""
    match error:
        case StoreConflictError() | DeposedError():
            return "conflict"
        case StoreFullError():
            return "no_space"
        case StoreUnavailableError():
            return "timeout" if isinstance(error.__cause__, TimeoutError) else "unavailable"
        case _:
            return "other"
