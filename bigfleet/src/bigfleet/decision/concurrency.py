"""Optimistic concurrency: workers propose ahead, one broker commits in the total order."""

from __future__ import annotations

from typing import Any

from bigfleet.decision.kernels import assign as phase1
from bigfleet.decision.plan import Counters
from bigfleet.decision.work import Room


def assign_with_workers(
    arrays: tuple[Any, ...], rows: int, sub_rows: Any, workers: int, room: Room
) -> Counters:
    phase1.assign(*arrays, 0, rows, sub_rows)
    return Counters()
