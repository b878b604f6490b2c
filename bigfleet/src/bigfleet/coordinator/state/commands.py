"""Everything that may be asked of the state, each a value with a name.

A command says what is wanted, never what follows from it; that is the rules' part. The time of a
command is passed beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bigfleet.coordinator.state.values import Move, MovePhase, Pool, ProviderEntry


@dataclass(frozen=True, slots=True)
class AddShard:
    """A shard reports from this address. An empty address leaves the one that is known."""

    shard_id: str
    address: str


@dataclass(frozen=True, slots=True)
class ForgetAddress:
    """A shard has no address that can be dialled; everything else of it stays."""

    shard_id: str


@dataclass(frozen=True, slots=True)
class RemoveShard:
    """A shard is no more, with its clusters, domains and quota slices."""

    shard_id: str


@dataclass(frozen=True, slots=True)
class ContactClusters:
    """Clusters called this shard. Those that belong to no shard are its own from now on."""

    shard_id: str
    cluster_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BindCluster:
    """A cluster belongs to this shard, also when it belonged to another."""

    cluster_id: str
    shard_id: str


@dataclass(frozen=True, slots=True)
class AssignDomain:
    """A domain is this shard's."""

    topology_key: str
    topology_value: str
    shard_id: str


@dataclass(frozen=True, slots=True)
class UnassignDomain:
    """A domain belongs to no shard."""

    topology_key: str
    topology_value: str


@dataclass(frozen=True, slots=True)
class SetQuota:
    """The whole allocation of a provider and region; without any shard it is removed."""

    provider: str
    region: str
    per_shard: Mapping[str, int]
    announced: int | None = None
    """How many slots shards say there are; None where it is not known."""


@dataclass(frozen=True, slots=True)
class RegisterProvider:
    """A provider is there, or is another than before."""

    provider: ProviderEntry


@dataclass(frozen=True, slots=True)
class RemoveProvider:
    """A provider is no more."""

    name: str


@dataclass(frozen=True, slots=True)
class PlanMoves:
    """Moves begin. Each is new and in its first phase."""

    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class QuotaShift:
    """So many slots of a pool go with a move from the donor's slice to the recipient's."""

    pool: Pool
    count: int


@dataclass(frozen=True, slots=True)
class StepMove:
    """A move is in this phase, or tried once more in the one it was in.

    Told again it changes nothing. `shift` is written with the phase, in one transaction.
    """

    move_id: str
    phase: MovePhase
    machine_ids: tuple[str, ...] = ()
    """What the donor picked; empty leaves what is known."""
    tries: int = 0
    reason: str = ""
    """Empty leaves what is known."""
    shift: QuotaShift | None = None


@dataclass(frozen=True, slots=True)
class ForgetMoves:
    """Moves that are over need not be remembered any more."""

    move_ids: tuple[str, ...]


Command = (
    AddShard
    | ForgetAddress
    | RemoveShard
    | ContactClusters
    | BindCluster
    | AssignDomain
    | UnassignDomain
    | SetQuota
    | RegisterProvider
    | RemoveProvider
    | PlanMoves
    | StepMove
    | ForgetMoves
)
