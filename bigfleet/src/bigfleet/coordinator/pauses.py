"""How long to wait before the next try: longer every time, and never in step with others.

Chance comes from the name of whoever waits, so that replicas differ and a run can be repeated.
"""

from __future__ import annotations

from random import Random


class Pauses:
    """Waits that double up to a limit, each between half of it and all of it."""

    def __init__(self, who: str, first: float, longest: float) -> None:
        self._chance = Random(who)
        self._first, self._longest = first, longest
        self._now = first

    def next(self) -> float:
        """Seconds to wait now."""
        wait = self._now
        self._now = min(self._longest, 2 * wait)
        return wait * self._chance.uniform(0.5, 1.0)

    def reset(self) -> None:
        """It went well: the next wait is a short one again."""
        self._now = self._first
