"""How long to wait before the next try: longer every time, never in step with others.

Used by every caller of another process and tries again. A success resets it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Waits that double up to a limit, each between half of it and all of it."""

    first: float = 0.5
    longest: float = 30.0
    chance: random.Random = field(default_factory=random.Random)
    _tries: int = 0

    def next(self, at_least: float | None = None) -> float:
        """Seconds to wait now; not less than a server asked for."""
        ceiling = min(self.longest, self.first * 2.0 ** min(self._tries, 30))
        self._tries += 1
        wait = ceiling * (0.5 + self.chance.random() / 2)
        # What a server asks for is kept, and jittered upwards: everybody was told the same number.
        return wait if at_least is None else max(wait, at_least * (1 + self.chance.random() / 4))

    def reset(self) -> None:
        """Something went well: the next wait is a short one again."""
        self._tries = 0

    @property
    def tries(self) -> int:
        """Waits since the last success."""
        return self._tries
