"""What the tables hold: shards, bindings, providers, moves. Frozen, and small: there are many.

Times are Unix nanoseconds. A domain's value is the id of its shard and a quota's a mapping of shard
ids to numbers; they need no class.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import quote

LONGEST_NAME: Final = 2_000
"""Bytes of a name, percent-encoded. Two of them and a slash fit into the key of every store."""
Domain = tuple[str, str]
"""A topology label's key, and one of its values."""
Pool = tuple[str, str]
"""A provider's name and a region."""


def is_short(name: str) -> bool:
    """Whether a name can be a key, or half of one."""
    return len(quote(name, safe="")) <= LONGEST_NAME


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """A registered shard."""

    address: str
    registered_at: int
    """When this address was registered."""
    since: int
    """When it was first registered. Machines outside all domains belong to the oldest shard, which
    a new address does not change."""


@dataclass(frozen=True, slots=True)
class ClusterBinding:
    """The shard a cluster belongs to."""

    shard: str
    bound_at: int


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """What shards dial. No shards named means all of them."""

    name: str
    address: str
    region: str = ""
    shards: tuple[str, ...] = ()

    def serves(self, shard_id: str) -> bool:
        """Whether a shard uses it."""
        return not self.shards or shard_id in self.shards


class Tier(StrEnum):
    """Where the machines of a move come from, in the order in which it is tried."""

    IDLE = "idle"
    QUOTA = "quota"
    PREEMPT = "preempt"


class MovePhase(StrEnum):
    """How far a move is."""

    PLANNED = "planned"
    DONOR_RELEASED = "donor_released"
    RECIPIENT_ADOPTED = "recipient_adopted"
    DONE = "done"
    ABANDONED = "abandoned"

    @property
    def is_over(self) -> bool:
        """Whether nothing will follow."""
        return self in (MovePhase.DONE, MovePhase.ABANDONED)


@dataclass(frozen=True, slots=True)
class MachineShape:
    """What the machines of a move must be like; an empty text means any."""

    instance_type: str = ""
    zone: str = ""
    provider: str = ""
    region: str = ""
    requirements: tuple[tuple[str, int, tuple[str, ...]], ...] = ()
    """Label key, operator as on the wire, values."""
    min_unit: tuple[tuple[str, str], ...] = ()
    """Resource name and quantity."""
    priority: int = 0
    """Of the demand they are for, as are the bucket and what it tolerates."""
    interruption_penalty_bucket: int = 0
    tolerations: tuple[tuple[str, str, str, str], ...] = ()
    """Key, operator, value, effect."""
    is_tolerations_stated: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """Machines on their way from one shard to another."""

    id: str
    tier: Tier
    donor: str
    recipient: str
    count: int
    wish: MachineShape = MachineShape()
    machine_ids: tuple[str, ...] = ()
    """Once the donor has picked them."""
    phase: MovePhase = MovePhase.PLANNED
    tries: int = 0
    created_at: int = 0
    updated_at: int = 0
    escalated_at: int = 0
    """When the shortfall it is for was first seen as escalated."""
    fingerprint: str = ""
    """Of the shortfall's profile."""
    reason: str = ""
