"""What moves machines between shards, as the rest of the coordinator sees it.

It lives as long as a leadership. What it wants it writes as commands, and says as instructions;
what it hears are reports and acknowledgements. Nothing else of the coordinator needs one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from bigfleet.coordinator.leadership.leader_state import LeaderState
from bigfleet.coordinator.reports.instructions import EndedInstruction
from bigfleet.coordinator.reports.report_cache import ReceivedReport
from bigfleet.coordinator.state import Move


class Rebalancer(Protocol):
    """Called on the leader alone. What is not awaited must be quick: it is part of a report."""

    async def run(self, leader_state: LeaderState) -> None:
        """Take up the stored moves and plan new ones, until cancelled."""

    def reported(self, leader_state: LeaderState, report: ReceivedReport) -> None:
        """A shard's report was taken; its acknowledgements come after."""

    def acknowledged(self, leader_state: LeaderState, ended: EndedInstruction) -> None:
        """A shard said how an instruction went. Also for those outside of a move."""

    def moves(self, leader_state: LeaderState) -> Sequence[Move]:
        """All moves that are known, in the order they were planned."""


class NoRebalancer:
    """Moves nothing."""

    async def run(self, leader_state: LeaderState) -> None:
        """Nothing to do."""
        await asyncio.Event().wait()

    def reported(self, leader_state: LeaderState, report: ReceivedReport) -> None:
        """Ignored."""

    def acknowledged(self, leader_state: LeaderState, ended: EndedInstruction) -> None:
        """Ignored."""

    def moves(self, leader_state: LeaderState) -> Sequence[Move]:
        """Those that an earlier leader left in the state."""
        return in_order(leader_state)


def in_order(leader_state: LeaderState) -> list[Move]:
    """The moves of the state, in the order they were planned."""
    return sorted(leader_state.state.moves.values(), key=lambda move: (move.created_at, move.id))
