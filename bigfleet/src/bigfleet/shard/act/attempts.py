"""One order on its way: what is known of it between its steps, and whom its next step waits for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from bigfleet.provider import ProviderClient
from bigfleet.shard.act.pending_drains import PendingDrain
from bigfleet.shard.machines.orders import Order
from bigfleet.shard.operators.messages import Blob


class Truth(Enum):
    """What is known of an order whose call was not answered."""

    UNKNOWN = "unknown"
    DONE = "done"
    NOT_DONE = "not done"


Peer = tuple[str, str]
"""Whose answer a step waits for: `provider` or `cluster` and its name, both empty where it waits
for none.
"""
NO_PEER: Final[Peer] = ("", "")


@dataclass(slots=True)
class Attempt:
    """One order being carried out."""

    order: Order
    cycle: int
    pending_drain: PendingDrain | None = None
    """Of a Drain whose instruction was sent before, and of a Keep."""
    later: bool = False
    """The second half of a Reclaim or Preempt, after its grace."""
    drain: bool = False
    """The provider's Drain is part of it."""
    begun: float | None = None
    """When it first left the queue."""
    worked: float = 0.0
    """Seconds its steps took that are over."""
    deadline: float = 0.0
    client: ProviderClient | None = None
    """Set once the provider was called: from then on it may have done what was ordered."""
    truth: Truth = Truth.UNKNOWN
    blob: Blob | None = None
    """What the operator sent, between the steps of a Bootstrap."""
    expired: int = 0
    """How often that came to its end before it was used."""
    is_mute: bool = False
    """It ended because its cluster delivers no bootstrap data."""
    hopeless: str = ""
    """Why it need not be tried; empty when it should."""
    number: int = 0
    """Its place among those that wait."""
    peer: Peer = NO_PEER
