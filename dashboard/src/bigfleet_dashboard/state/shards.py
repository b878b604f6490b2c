"""One shard, and everything that is known of it: its own word, its registration, its pages."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from bigfleet_dashboard.state.machines import MachineTable
from bigfleet_dashboard.state.needs import NeedRow
from bigfleet_dashboard.state.pages import Cycles, Scrape, quantile

_ERRORS: Final = 20


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that went wrong while asking it."""

    at_seconds: float
    text: str


@dataclass(slots=True)
class ShardState:
    """A shard. Sources write it; `heard_at` is when it last answered, 0 for never."""

    shard_id: str
    address: str
    heard_at: float = 0.0
    answering: bool = False
    trouble: str = ""
    http_trouble: str = ""
    http_address: str = ""
    status: pb.ShardStatus | None = None
    machines: MachineTable = field(default_factory=MachineTable)
    machines_at: float = 0.0
    needs: list[NeedRow] = field(default_factory=list)
    needs_cycle: int = 0
    cycles: Cycles = field(default_factory=Cycles)
    scrape: Scrape = field(default_factory=Scrape)
    errors: deque[Trouble] = field(default_factory=lambda: deque(maxlen=_ERRORS))

    @property
    def sessions(self) -> tuple[str, ...]:
        """Clusters whose operator is connected; none of a shard that does not answer."""
        return tuple(self.status.sessions) if self.answering and self.status is not None else ()

    def failed(self, text: str, now: float) -> None:
        """It did not answer."""
        if text != self.trouble:
            self.errors.append(Trouble(now, text))
        self.answering, self.trouble = False, text

    def answered(self, now: float) -> None:
        """It did."""
        self.answering, self.trouble, self.heard_at = True, "", now

    def cycle_ms(self, share: float, now: float, seconds: float = 300.0) -> float | None:
        """A quantile of the cycle times of the last minutes."""
        return quantile([c.wall_ms for c in self.cycles.since(now - seconds)], share)

    def phase_ms(self, share: float, now: float, seconds: float = 300.0) -> dict[str, float]:
        """The same per phase."""
        recent = self.cycles.since(now - seconds)
        names = recent[-1].phases if recent else {}
        return {
            name: round(quantile([c.phases.get(name, 0.0) for c in recent], share) or 0.0, 3)
            for name in names
        }
