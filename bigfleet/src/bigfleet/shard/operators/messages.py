"""What passes between those who act on machines and the operators' sessions: plain values."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Blob:
    """Bootstrap data and when its credential ends, in Unix nanoseconds; 0 for never."""

    user_data: bytes = field(repr=False)
    expires_ns: int = 0


@dataclass(frozen=True, slots=True)
class Instruction:
    """Ask a cluster to empty a node, or with `cancel` to stop doing so."""

    id: str
    node: str
    grace_seconds: int
    preemptor_priority: int = 0
    cancel: bool = False
    reason: int = 0
    """A ReclaimReason of the wire."""
