"""What the fleet was like a while ago: a ring of points for the charts of the overview.

For a look at the last half hour. A longer memory is Prometheus' business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

EVERY_SECONDS: Final = 2.0
KEPT: Final = 900


@dataclass(frozen=True, slots=True)
class Point:
    """The fleet at one time."""

    unix_seconds: float
    spend: float
    unmet: int
    states: Mapping[str, int]
    actions: int
    cycle_ms: float


class History:
    """Points, oldest first."""

    def __init__(self, kept: int = KEPT) -> None:
        self._points: deque[Point] = deque(maxlen=kept)

    def add(self, point: Point) -> None:
        """One more; too early after the last one is passed over."""
        last = self._points[-1].unix_seconds if self._points else 0.0
        if point.unix_seconds - last >= EVERY_SECONDS * 0.9:
            self._points.append(point)

    def document(self, since: float = 0.0) -> dict[str, object]:
        """Columns of the points after a time."""
        points = [point for point in self._points if point.unix_seconds > since]
        return {
            "time": [round(point.unix_seconds, 1) for point in points],
            "spend": [round(point.spend, 4) for point in points],
            "unmet": [point.unmet for point in points],
            "actions": [point.actions for point in points],
            "cycle_ms": [round(point.cycle_ms, 3) for point in points],
            "states": {
                name: [point.states.get(name, 0) for point in points]
                for name in (points[-1].states if points else ())
            },
        }
