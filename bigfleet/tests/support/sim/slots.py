"""Slots of a model provider: what a machine is, and what it is doing right now."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from bigfleet.model import CapacityType, MachineState
from bigfleet_api.v1alpha1 import provider_pb2 as pb

S = MachineState


class Kind(StrEnum):
    """The four mutations."""

    CREATE = "Create"
    CONFIGURE = "Configure"
    DRAIN = "Drain"
    DELETE = "Delete"


@dataclass(frozen=True, slots=True)
class Way:
    """Where a mutation starts, what it passes and where it ends."""

    start: MachineState
    via: MachineState
    end: MachineState


WAYS: Final = {
    Kind.CREATE: Way(S.SPECULATIVE, S.CREATING, S.IDLE),
    Kind.CONFIGURE: Way(S.IDLE, S.CONFIGURING, S.CONFIGURED),
    Kind.DRAIN: Way(S.CONFIGURED, S.DRAINING, S.IDLE),
    Kind.DELETE: Way(S.IDLE, S.DELETING, S.SPECULATIVE),
}
KIND_OF: Final = {way.via: kind for kind, way in WAYS.items()}
FIXED: Final = frozenset({CapacityType.BARE_METAL, CapacityType.RESERVED})


@dataclass(frozen=True, slots=True)
class Offer:
    """What is the same for the whole life of a slot."""

    instance_type: str
    zone: str
    rack: str
    capacity_type: CapacityType
    price: float
    interruption: float
    cpu: int
    memory_gi: int

    @property
    def pool(self) -> tuple[str, str, CapacityType]:
        """What runs out of stock together."""
        return (self.instance_type, self.zone, self.capacity_type)

    @property
    def labels(self) -> dict[str, str]:
        """As a provider reports them."""
        return {
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "topology.kubernetes.io/region": "r1",
            "topology.bigfleet/rack": self.rack,
        }


@dataclass(slots=True)
class Slot:
    """One machine as its provider knows it."""

    id: str
    offer: Offer
    state: MachineState
    host: str = ""
    cluster: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    last_error: str = ""
    ends_ns: int = 0
    price: float = 0.0
    revision: int = 0
    changed_at: float = 0.0
    round: int = 0
    """Grows with every transition, so that the end of an older one is known for what it is."""
    operations: dict[Kind, str] = field(default_factory=dict)
    owner: str = ""
    """The shard that acted on it last."""

    def record(self, provider: str) -> pb.Machine:
        """As it is listed."""
        offer = self.offer
        shape = {"cpu": str(offer.cpu), "memory": f"{offer.memory_gi}Gi", "pods": "110"}
        return pb.Machine(
            id=self.id,
            state=pb.MachineState.ValueType(int(self.state)),
            host=pb.HostRef(provider=provider, ref=self.host) if self.host else None,
            instance_type=offer.instance_type,
            zone=offer.zone,
            capacity_type=pb.CapacityType.ValueType(int(offer.capacity_type)),
            price_per_hour=self.price,
            interruption_probability=offer.interruption,
            resources=pb.Resources(resources=shape),
            labels=offer.labels,
            last_error=self.last_error,
            cluster=self.cluster,
            shard_metadata=self.metadata,
            interruption_unix_nanos=self.ends_ns,
        )
