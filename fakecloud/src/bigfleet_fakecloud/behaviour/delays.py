"""Delays that a test sets while the cloud runs: latency, lag and pace.

Two delays are kept apart. `latency` is how long every call takes. `transition`, when set, is how
long every step of a life cycle and every operation takes instead of its own time; `pace`
stretches or shrinks those times. A chance spread around a time comes from the cloud's seed.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, fields

from bigfleet_fakecloud.errors import ScriptError

# Snapshots older than this are dropped, so no read can lag further behind.
HORIZON = 600.0


@dataclass(slots=True)
class Delays:
    """Seconds everywhere; `pace` is a factor."""

    latency: float = 0.0
    lag_get: float = 0.0
    lag_list: float = 0.0
    pace: float = 1.0
    transition: float | None = None

    def turn(self, values: Mapping[str, object]) -> None:
        """Set some of them, all or none."""
        known = {field.name for field in fields(self)}
        for name, value in values.items():
            if name not in known:
                raise ScriptError(f"no delay {name!r}; there are {', '.join(sorted(known))}")
            if value is None and name == "transition":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise ScriptError(f"{name} is a number from 0 on, not {value!r}")
            if name.startswith("lag") and value > HORIZON:
                raise ScriptError(f"{name} is at most {HORIZON:.0f} s, not {value!r}")
        for name, value in values.items():
            setattr(self, name, value)

    def seconds(self, usual: float, spread: float, rng: random.Random) -> float:
        """How long something takes that usually takes so long."""
        if self.transition is not None:
            return self.transition
        return usual * self.pace * (1.0 + spread * rng.uniform(-1.0, 1.0))
