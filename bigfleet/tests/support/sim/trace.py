"""What happened, in order: a digest of everything, and the last events in words.

The same seed and the same code give the same digest. A broken invariant is noted here as well and
stops the run at the end of the step in which it was found, whatever was on the stack.
"""

from __future__ import annotations

import hashlib
from collections import deque
from typing import Final, TextIO

from sim.loop import VirtualLoop

KEPT: Final = 50


class InvariantError(Exception):
    """Something happened that must never happen."""

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.invariant = invariant


class Trace:
    """The events of one run."""

    def __init__(self, loop: VirtualLoop, sink: TextIO | None = None) -> None:
        self.recent: deque[str] = deque(maxlen=KEPT)
        self.events = 0
        self._loop = loop
        self._sink = sink
        self._hash = hashlib.blake2b(digest_size=16)

    def now(self) -> float:
        """The run's time."""
        return self._loop.time()

    def note(self, who: str, what: str) -> None:
        """Something happened now."""
        line = f"{self._loop.time():.6f} #{self._loop.steps} {who}: {what}"
        self.events += 1
        self.recent.append(line)
        self._hash.update(line.encode() + b"\n")
        if self._sink is not None:
            self._sink.write(line + "\n")

    def broken(self, invariant: str, text: str) -> None:
        """An invariant does not hold: the run ends with this step."""
        self.note("invariant", f"{invariant} {text}")
        self._loop.fail(InvariantError(invariant, text))

    @property
    def digest(self) -> str:
        """Of all events so far."""
        return self._hash.hexdigest()
