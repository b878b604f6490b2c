"""What can go wrong between a shard and its coordinator.

CoordinationError
├── ReportError               a report that was not taken; it says why and, at times, who leads
├── InvalidInstructionError   an instruction that makes no sense to this shard
├── MoveError                 a move that cannot be carried out now
└── NotYetError               a move this shard cannot judge before it has seen its machines
"""

from __future__ import annotations


class CoordinationError(Exception):
    """Something between a shard and its coordinator."""


class ReportError(CoordinationError):
    """A call that ended with a status other than OK. `leader` is empty when none was named."""

    def __init__(self, code: str, text: str, leader: str = "") -> None:
        super().__init__(f"{code}: {text}" if text else code)
        self.code = code
        self.leader = leader

    @property
    def not_leader(self) -> bool:
        """Whether the coordinator that was asked is not the one that decides."""
        return self.code == "FAILED_PRECONDITION"


class InvalidInstructionError(CoordinationError, ValueError):
    """An instruction that makes no sense to this shard, however often it is sent."""


class MoveError(CoordinationError):
    """A move that cannot be carried out now."""


class NotYetError(CoordinationError):
    """A shard that has just begun does not know yet what it has: it will, and says nothing."""
