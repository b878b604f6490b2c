"""The words of a plan: what can be done to a machine, and why demand can stay unmet."""

from __future__ import annotations

from enum import IntEnum


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


class Reason(IntEnum):
    """Why a need stays unmet; numbers as on the wire (UnmetReason)."""

    NONE = 0
    PRIORITY_STARVED = 1
    NO_MATCHING_SUPPLY = 2
    TOPOLOGY_UNSATISFIABLE = 3
    PREEMPTION_EXHAUSTED = 4
    QUOTA = 100
    SPEND_LIMIT = 101
    STOCK_OUT = 102
    BOOTSTRAP_ERROR = 103
    PAUSED = 104
