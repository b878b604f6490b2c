"""Since when the oldest machine of each moving state is in it, without looking at the others."""

from __future__ import annotations

from collections.abc import Callable

from bigfleet.model import Machine, MachineState
from bigfleet.model.lifecycle import TRANSITIONAL

S = MachineState


class TransitionAges:
    """Listens to changes of machines. Time only grows, so the first of a state is its oldest."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._since: dict[MachineState, dict[str, int]] = {state: {} for state in TRANSITIONAL}

    def __call__(self, before: Machine | None, after: Machine | None) -> None:
        """One machine changed, came or went."""
        was = before.state if before else None
        state = after.state if after else None
        if was is state:
            return
        if before and was in self._since:
            self._since[before.state].pop(before.id, None)
        if after and state in self._since:
            self._since[after.state][after.id] = self._now()

    def oldest(self) -> dict[MachineState, int]:
        """Per state that has any: since when its oldest machine is in it."""
        return {state: next(iter(times.values())) for state, times in self._since.items() if times}
