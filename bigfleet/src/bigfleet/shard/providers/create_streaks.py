"""Creates that fail again and again: a memory for those who explain a cycle, never for a decision.

A run begins with a failed Create of an offering and ends with a success of one begun after it. The
first failure may be a moment's: what is tried after it counts as on its way. When that fails as
well the run is a habit, and what is tried from then on counts as nothing until some of it is there.
Creates begun before the run do not belong to it, whatever becomes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from bigfleet.model.columns import Offering
from bigfleet.shard.providers.create_failures import CreateFailure

TOGETHER_SECONDS: Final = 1.0
"""What begins so soon after a run's first failure was decided before anybody knew of it."""
FORGOTTEN_SECONDS: Final = 7200.0
"""Longer than any wait after a failure, and than any Create takes: it is not asked for any more."""


@dataclass(frozen=True, slots=True)
class Run:
    """Failures in a row of one offering."""

    cause: CreateFailure
    text: str
    """What the last one said."""
    habit: bool = False
    """Whether what was tried after the first failed too."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Which Creates fail at this moment."""

    runs: Mapping[Offering, Run] = field(default_factory=dict)
    held: Mapping[str, Run] = field(default_factory=dict)
    """Providers that get no Creates now, because they throttle."""
    retries: frozenset[str] = frozenset()
    """Machines that were begun in a run which is a habit."""

    def __bool__(self) -> bool:
        return bool(self.runs or self.held)

    def of(self, offering: Offering) -> Run | None:
        """Why Creates of an offering fail, if they do."""
        return self.runs.get(offering) or self.held.get(offering[0])

    def in_vain(self, offering: Offering) -> bool:
        """Whether a Create that is ordered now counts as nothing."""
        run = self.runs.get(offering)
        return offering[0] in self.held or (run is not None and run.habit)


@dataclass(slots=True)
class _Lasting:
    cause: CreateFailure
    text: str
    since: float
    last: float
    habit: bool = False
    retries: set[str] = field(default_factory=set)


class CreateStreaks:
    """The runs of one shard."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._runs: dict[Offering, _Lasting] = {}
        self._throttled: dict[str, Run] = {}
        """Per provider, the last time it said so."""

    def begun(self, machine_id: str, offering: Offering) -> None:
        """A Create is about to be sent."""
        run = self._runs.get(offering)
        if run is None:
            return
        now = self._monotonic()
        if now - run.since >= TOGETHER_SECONDS:
            run.retries.add(machine_id)
            run.last = now

    def failed(self, machine_id: str, offering: Offering, cause: CreateFailure, text: str) -> None:
        """A Create was refused, or ended in Failed."""
        now = self._monotonic()
        if cause is CreateFailure.THROTTLED:
            self._throttled[offering[0]] = Run(cause, text)
        run = self._runs.get(offering)
        if run is None:
            self._runs[offering] = _Lasting(cause, text, now, now)
            return
        run.habit |= machine_id in run.retries
        run.retries.discard(machine_id)
        run.cause, run.text, run.last = cause, text, now

    def created(self, machine_id: str, offering: Offering) -> None:
        """A Create ended in Idle."""
        run = self._runs.get(offering)
        if run is not None and machine_id in run.retries:
            del self._runs[offering]

    def trouble(self, held: Iterable[str]) -> Trouble:
        """What fails now; these providers get no Creates at present."""
        self._forget()
        return Trouble(
            {o: Run(r.cause, r.text, r.habit) for o, r in self._runs.items()},
            {name: self._throttled[name] for name in held if name in self._throttled},
            frozenset().union(*(r.retries for r in self._runs.values() if r.habit)),
        )

    def _forget(self) -> None:
        end = self._monotonic() - FORGOTTEN_SECONDS
        for offering in [o for o, run in self._runs.items() if run.last < end]:
            del self._runs[offering]
