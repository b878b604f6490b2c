"""What the coordinator says: who there is, who owns what, and what moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bigfleet_api.v1alpha1 import coordinator_pb2 as pb


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica as it answers: leads, follows, or is silent."""

    address: str
    role: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class CoordinatorView:
    """One round of answers of the leader; empty before the first."""

    at_seconds: float = 0.0
    leader: str = ""
    replicas: tuple[Replica, ...] = ()
    shards: tuple[pb.ShardRegistryEntry, ...] = ()
    reports: Mapping[str, pb.ShardReportSnapshot] = field(default_factory=dict)
    domains: tuple[pb.DomainAssignment, ...] = ()
    quotas: tuple[pb.QuotaAllocation, ...] = ()
    providers: tuple[pb.ProviderEntry, ...] = ()
    bindings: Mapping[str, pb.ClusterBinding] = field(default_factory=dict)
    instructions: tuple[pb.PendingInstruction, ...] = ()
    moves: tuple[pb.Move, ...] = ()
    call_ms: float = 0.0
    """What a round of reads took, the store's part included."""
