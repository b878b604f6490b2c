"""The words of a plan: what can be done to a machine; why demand can stay unmet is a value of the
model."""

from __future__ import annotations

from enum import IntEnum

from bigfleet.model.reasons import Reason

__all__ = ["ActionKind", "Reason"]


class ActionKind(IntEnum):
    """What the shard is asked to do with one machine."""

    BOOTSTRAP = 1
    """Idle -> Configuring: bind it to a cluster."""
    PROVISION = 2
    """Speculative -> Creating: make it exist, for the need that took it."""
    RECLAIM = 3
    """Configured, claimed by nobody: drain it, unhurried."""
    PREEMPT = 4
    """Configured: drain it for a more important need."""
    KEEP = 5
    """Leaving, but its need is back: call the drain off."""
    DELETE = 6
    """Idle for longer than its hold: give it back to its provider."""

    @property
    def title(self) -> str:
        """The name people and metrics use."""
        return self.name.capitalize()
