"""What can go wrong for callers of a coordinator.

CoordinatorError
├── NotLeaderError       another replica leads, or none; it names the leader where it knows one
└── WriteFailedError     the store did not take a write, or did not say so in time

Refusals of the state are `state.RefusalError`, and those of a store `store.StoreError`.
"""

from __future__ import annotations


class CoordinatorError(Exception):
    """A coordinator cannot do what was asked."""


class NotLeaderError(CoordinatorError):
    """This replica does not lead. `leader` is empty when no leader is known."""

    def __init__(self, leader: str = "") -> None:
        super().__init__("coordinator: not leader")
        self.leader = leader


class WriteFailedError(CoordinatorError):
    """The store did not take a write. It may still have; asking again finds out."""
