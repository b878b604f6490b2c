"""Why a shard is not of use at present, for /readyz and the health service.

It is when it has something to decide on, decides, hears of its providers and can write down what it
does. Whether it is alive is another question, and does not depend on any of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bigfleet.observe.process import Clock
from bigfleet.shard.act.executor import Executor
from bigfleet.shard.providers.lister import Lister
from bigfleet.shard.state.disk_health import DiskHealth

SILENT_SECONDS: Final = 60.0
"""So long without a decision, or without an answer of any provider."""
_CYCLES: Final = 3
"""Cycles that pass in that time at least, where the owner made them longer."""


class ShardReadiness:
    """Looks at the parts of a shard when it is asked."""

    def __init__(
        self, clock: Clock, executor: Executor, lister: Lister, disk: DiskHealth, interval: float
    ) -> None:
        self._clock = clock
        self._executor = executor
        self._lister = lister
        self._disk = disk
        self._patience = max(SILENT_SECONDS, _CYCLES * interval)
        self._started = self._decided_at = clock.monotonic()

    def decided(self) -> None:
        """A decision has ended, or none is due yet."""
        self._decided_at = self._clock.monotonic()

    def problem(self, awaited: Sequence[str]) -> str:
        """What is wrong, and what to do; empty when nothing is. `awaited` are the providers whose
        first List is waited for."""
        if self._executor.not_ready:
            return self._executor.not_ready
        if awaited:
            return f"waiting for the first List of provider {', '.join(awaited)}"
        if self._disk.trouble:
            return f"the data directory cannot be written: {self._disk.trouble}"
        return self._undecided() or self._unanswered()

    def _undecided(self) -> str:
        waited = self._clock.monotonic() - self._decided_at
        if waited < self._patience:
            return ""
        return (
            f"no decision has ended for {waited:.0f} s: lower --max-decision-time or --max-work, "
            "so that the heaviest clusters are left out"
        )

    def _unanswered(self) -> str:
        status = self._lister.status()
        running = self._clock.monotonic() - self._started
        ages = [running if one.age_seconds is None else one.age_seconds for one in status]
        if not ages or min(ages) < self._patience:
            return ""
        names = ", ".join(sorted(one.name for one in status))
        return (
            f"no provider has answered for more than {self._patience:.0f} s: {names}; "
            "`bigfleetctl status` shows their last errors"
        )
