"""Operations that take their time: begun by a call, followed by polling, ended well or badly.

The effect happens at the end and only when it ends well. A failure that a test ordered for an
operation shows itself there, after the call that began it was answered with success.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from bigfleet_fakecloud.behaviour.delays import Delays
from bigfleet_fakecloud.behaviour.faults import Faults, Moment
from bigfleet_fakecloud.errors import NotFound, Problem
from bigfleet_fakecloud.state.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as it is at a moment; `progress` goes from 0 to 1."""

    ref: str
    action: str
    target: str
    started: float
    ends: float
    progress: float
    error: Problem | None

    @property
    def done(self) -> bool:
        """Whether it has ended, well or badly."""
        return self.progress >= 1.0


def operation_headers(
    url: str, *, retry_after: float | None = None, location: str | None = None
) -> dict[str, str]:
    """The headers by which a cloud says where a long operation can be followed.

    `url` is where its state is read (`Azure-AsyncOperation` and, by other clouds,
    `Operation-Location`); `location` is where its result will be.
    """
    headers = {"Azure-AsyncOperation": url, "Operation-Location": url}
    if location is not None:
        headers["Location"] = location
    if retry_after is not None:
        headers["Retry-After"] = f"{retry_after:g}"
    return headers


@dataclass(slots=True)
class _Running:
    ref: str
    action: str
    target: str
    started: float
    ends: float
    error: Problem | None
    ended: bool = False


class Operations:
    """All operations of a cloud."""

    def __init__(
        self, timeline: Timeline, delays: Delays, rng: random.Random, faults: Faults
    ) -> None:
        self._timeline = timeline
        self._delays = delays
        self._rng = rng
        self._faults = faults
        self._running: dict[str, _Running] = {}

    def begin(
        self,
        action: str,
        target: str,
        seconds: float = 0.0,
        effect: Callable[[], object] | None = None,
        error: Problem | None = None,
    ) -> Operation:
        """Start one. A `Problem` raised by its effect is how it ends."""
        with self._timeline.turn():
            rule = self._faults.pick(action, Moment.OPERATION)
            failure = error or (rule.problem() if rule else None)
            now = self._timeline.now()
            takes = self._delays.seconds(seconds, 0.0, self._rng)
            ref = f"op-{len(self._running) + 1:08d}"
            running = _Running(ref, action, target, now, now + takes, failure)
            self._running[ref] = running
            self._timeline.after(takes, lambda: self._end(running, effect))
            return self._view(running)

    def open(self, action: str, target: str) -> Operation:
        """Start one whose end comes from outside, by `finish`."""
        with self._timeline.turn():
            ref = f"op-{len(self._running) + 1:08d}"
            rule = self._faults.pick(action, Moment.OPERATION)
            failure = rule.problem() if rule else None
            running = _Running(ref, action, target, self._timeline.now(), math.inf, failure)
            self._running[ref] = running
            return self._view(running)

    def finish(self, ref: str, error: Problem | None = None) -> None:
        """End one that was opened, well or badly; only the first end counts."""
        with self._timeline.turn():
            running = self._running.get(ref)
            if running is None:
                raise NotFound(f"no operation {ref}")
            if not running.ended:
                running.error = running.error or error
                running.ends = self._timeline.now()
                running.ended = True

    def get(self, ref: str) -> Operation:
        """How far it is."""
        with self._timeline.turn():
            running = self._running.get(ref)
            if running is None:
                raise NotFound(f"no operation {ref}")
            return self._view(running)

    def _end(self, running: _Running, effect: Callable[[], object] | None) -> None:
        if effect is not None and running.error is None:
            try:
                effect()
            except Problem as problem:
                running.error = problem
        running.ended = True

    def _view(self, running: _Running) -> Operation:
        gone = self._timeline.now() - running.started
        takes = running.ends - running.started
        part = gone / takes if 0 < takes < math.inf else 0.0
        progress = 1.0 if running.ended else min(part, 0.99)
        return Operation(
            ref=running.ref,
            action=running.action,
            target=running.target,
            started=running.started,
            ends=running.ends,
            progress=progress,
            error=running.error if running.ended else None,
        )
