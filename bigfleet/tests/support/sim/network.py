"""How long things take on the way, and what never arrives.

Two kinds of traffic use it. Calls to providers (`calls`) are independent of each other: they
overtake, get lost on the way there or back, arrive after the caller has given up, arrive twice.
Sessions (`streams`) keep their order, and what is lost breaks the connection. `Weather` says how
bad it is; the fault plan changes it.
"""

from __future__ import annotations

import contextvars
from dataclasses import dataclass
from random import Random
from typing import Final

from sim.trace import Trace

NOWHERE: Final = contextvars.Context()
"""The context of what belongs to no process: it goes on when processes die."""


@dataclass
class Weather:
    """What the network is like now."""

    delay: float = 0.002
    """Typical seconds one way; most take less, a few much more."""
    spread: float = 1.0
    lost_request: float = 0.0
    lost_answer: float = 0.0
    duplicate: float = 0.0
    straggler: float = 0.0
    """Share of messages that take seconds, sometimes longer than anybody waits."""
    reset: float = 0.0
    """Share of frames with which a stream breaks."""


class Network:
    """Delays and cuts between named ends."""

    def __init__(self, rng: Random, trace: Trace) -> None:
        self.rng = rng
        self.trace = trace
        self.weather = Weather()
        self._cut: set[frozenset[str]] = set()

    def cut(self, one: str, other: str) -> None:
        """Nothing passes between two ends."""
        self._cut.add(frozenset((one, other)))

    def repair(self, one: str, other: str) -> None:
        """It passes again."""
        self._cut.discard(frozenset((one, other)))

    def repair_all(self) -> None:
        """Everything passes, at its usual pace."""
        self._cut.clear()
        self.weather = Weather()

    def is_cut(self, one: str, other: str) -> bool:
        """Whether nothing passes."""
        return frozenset((one, other)) in self._cut

    def delay(self) -> float:
        """Seconds one message takes."""
        rng, weather = self.rng, self.weather
        if weather.straggler and rng.random() < weather.straggler:
            return rng.uniform(0.5, 45.0)
        return weather.delay * (0.2 + weather.spread * rng.expovariate(1.0))
