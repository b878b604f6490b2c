"""A machine as a value, and its bytes on the wire.

`Shape` is what slots of one offering share (type, zone, price, resources, labels); its protobuf
bytes are made once. `Record` is one slot: its shape and what changes during its life. A record's
bytes are the concatenation of both parts, which protobuf defines as their merge, so a change of
state costs the encoding of a few short fields and a List only joins what is already encoded.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_providerkit.machines.state import CapacityType, Kind, State

LABEL_TAINTS = "bigfleet.lucy.sh/taints"
"""Where an earlier release wrote the taints of a machine; read for one release more."""
NO_OPERATIONS = ("", "", "", "")


@dataclass(frozen=True, slots=True)
class Shape:
    """What all slots of an offering have in common."""

    instance_type: str
    zone: str
    capacity_type: CapacityType
    price: float
    probability: float
    resources: Mapping[str, str]
    allocatable: Mapping[str, str]
    labels: Mapping[str, str]
    encoded: bytes = field(default=b"", repr=False, compare=False)
    taints: tuple[str, ...] = ()
    """As `key=value:Effect`; those a node keeps for as long as it serves a cluster."""

    def packed(self) -> "Shape":
        """The same shape with its bytes ready."""
        message = pb.Machine(
            instance_type=self.instance_type,
            zone=self.zone,
            capacity_type=pb.CapacityType.ValueType(int(self.capacity_type)),
            price_per_hour=self.price,
            interruption_probability=self.probability,
            resources=pb.Resources(resources=self.resources),
            labels=self.labels,
            taints=map(taint_message, self.taints),
        )
        if self.allocatable:
            message.allocatable.resources.update(self.allocatable)
        return replace(self, encoded=message.SerializeToString(deterministic=True))


@functools.lru_cache(maxsize=4096)
def shape_of(encoded: bytes) -> Shape:
    """The shape behind its bytes; equal bytes give the same object."""
    message = pb.Machine.FromString(encoded)
    labels = dict(message.labels)
    earlier = labels.pop(LABEL_TAINTS, "")
    taints = tuple(earlier.split(",")) if earlier else tuple(map(taint_text, message.taints))
    shape = Shape(
        message.instance_type,
        message.zone,
        CapacityType(message.capacity_type),
        message.price_per_hour,
        message.interruption_probability,
        dict(message.resources.resources),
        dict(message.allocatable.resources),
        labels,
        encoded,
        taints,
    )
    return shape.packed() if earlier else shape


def taint_message(text: str) -> pb.Taint:
    """A taint of an offering on the wire."""
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return pb.Taint(key=key, value=value, effect=effect)


def taint_text(taint: pb.Taint) -> str:
    """A taint as an offering writes it."""
    return f"{taint.key}={taint.value}:{taint.effect}"


@dataclass(frozen=True, slots=True)
class Record:
    """One slot. `metadata` is the wire's own encoding of shard_metadata and is never read."""

    id: str
    label: str
    shape: Shape
    state: State = State.SPECULATIVE
    host: str = ""
    cluster: str = ""
    metadata: bytes = b""
    last_error: str = ""
    observed: float | None = None
    ends: int = 0
    life: int = 1
    failed_at: float = 0.0
    failed_in: str = ""
    create_op: str = ""
    configure_op: str = ""
    drain_op: str = ""
    delete_op: str = ""
    extra: bool = False

    def operation(self, kind: Kind) -> str:
        """The stored operation of a kind, or an empty text."""
        match kind:
            case Kind.CREATE:
                return self.create_op
            case Kind.CONFIGURE:
                return self.configure_op
            case Kind.DRAIN:
                return self.drain_op
            case Kind.DELETE:
                return self.delete_op

    @property
    def operations(self) -> tuple[str, str, str, str]:
        """The stored operations, in the order of the kinds."""
        return (self.create_op, self.configure_op, self.drain_op, self.delete_op)

    @property
    def capacity_type(self) -> CapacityType:
        """How the machine is paid for."""
        return self.shape.capacity_type


def encode(record: Record) -> bytes:
    """The bytes of a Machine message."""
    message = pb.Machine(
        id=record.id,
        state=pb.MachineState.ValueType(int(record.state)),
        cluster=record.cluster,
        last_error=record.last_error,
        interruption_unix_nanos=record.ends,
    )
    if record.host:
        message.host.provider = record.label
        message.host.ref = record.host
    parts = [record.shape.encoded, message.SerializeToString(), record.metadata]
    if record.observed is not None:
        # Of a number that occurs twice, the later one counts.
        parts.append(pb.Machine(interruption_probability=record.observed).SerializeToString())
    return b"".join(parts)


def framed(encoded: bytes) -> bytes:
    """A Machine as it stands inside a MachineList: tag of field 1, length, bytes."""
    return b"\x0a" + varint(len(encoded)) + encoded


def varint(number: int) -> bytes:
    """Protobuf's variable-length encoding of a non-negative number."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode_metadata(metadata: Mapping[str, str]) -> bytes:
    """The wire's bytes of a shard_metadata map: a copy that cannot change."""
    if not metadata:
        return b""
    return pb.Machine(shard_metadata=metadata).SerializeToString()
