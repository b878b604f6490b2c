"""The shard's side of the coordinator: it reports, and does what it is told once.

    report         what the shard says of itself, from columns
    client         when it reports and to whom: every few seconds, to the leader
    calling        the call over gRPC
    instructions   fences, and each instruction once by its id
    moves          machines that change their shard: picking, giving, receiving, draining
    promises       machines drained for another shard, kept for it
    picking        which machines to give, on columns
    remembered     instructions done, over restarts

A shard needs none of this to decide: with no coordinator it owns everything and goes on.
"""

from bigfleet.shard.coordination.calling import GrpcCaller
from bigfleet.shard.coordination.client import CoordinatorClient
from bigfleet.shard.coordination.errors import (
    CoordinationError,
    InvalidInstructionError,
    ReportError,
)
from bigfleet.shard.coordination.instructions import Instructions
from bigfleet.shard.coordination.moves import Moves
from bigfleet.shard.coordination.remembered import Remembered
from bigfleet.shard.coordination.report import Reports, summarise

__all__ = [
    "CoordinationError",
    "CoordinatorClient",
    "GrpcCaller",
    "Instructions",
    "InvalidInstructionError",
    "Moves",
    "Remembered",
    "ReportError",
    "Reports",
    "summarise",
]
