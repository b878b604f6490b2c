"""The inventory of the reference provider: records, revisions, operations, and what is seeded."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from bigfleet_api.v1alpha1 import provider_pb2 as pb

CPU, MEMORY = "4", "16Gi"
FAULTY_SLOTS = 12
STOCKOUT_FROM = 8


@dataclass(slots=True)
class Slot:
    """One machine and what the provider remembers of it."""

    record: pb.Machine
    revision: int = 0
    operations: dict[str, str] = field(default_factory=dict)
    running: str = ""
    deadline: float = 0.0
    failed_at: float = 0.0
    missed: int = 0
    encoded: bytes = b""

    def bytes(self) -> bytes:
        """The record as it stands in a MachineList."""
        if not self.encoded:
            raw = self.record.SerializeToString()
            self.encoded = b"\x0a" + _varint(len(raw)) + raw
        return self.encoded


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


class Inventory:
    """Slots in the order of their last change."""

    def __init__(self) -> None:
        self.slots: OrderedDict[str, Slot] = OrderedDict()
        self.head = 0

    def add(self, slot: Slot) -> None:
        """A slot with a revision of its own."""
        self.head = max(self.head, slot.revision)
        self.slots[slot.record.id] = slot

    def touch(self, slot: Slot) -> None:
        """The record changed: next revision, last in order."""
        self.head += 1
        slot.revision = self.head
        slot.encoded = b""
        self.slots.move_to_end(slot.record.id)

    def changed_since(self, revision: int) -> Iterator[Slot]:
        """Every slot changed after a revision, the oldest change first."""
        found = []
        for slot in reversed(self.slots.values()):
            if slot.revision <= revision:
                break
            found.append(slot)
        return reversed(found)


def seed(provider: str, count: int) -> Iterator[pb.Machine]:
    """The slots of a fresh provider: a third spot, and twelve that fail on purpose."""
    for n in range(count):
        spot = n % 3 == 2
        yield _record(provider, "standard-4", n, spot=spot)
    for n in range(FAULTY_SLOTS):
        record = _record(provider, "create-4", n, spot=False)
        kind = "error" if n < STOCKOUT_FROM else "stockout"
        record.labels["conformance.fault/create"] = kind
        yield record


def _record(provider: str, size: str, number: int, *, spot: bool) -> pb.Machine:
    kind = "Spot" if spot else "OnDemand"
    record = pb.Machine(
        id=f"{provider}/{kind}/fault-{size}/fault-zone-a/{number:03}",
        state=pb.MACHINE_STATE_SPECULATIVE,
        instance_type=f"fault-{size}",
        zone="fault-zone-a",
        capacity_type=pb.CAPACITY_TYPE_SPOT if spot else pb.CAPACITY_TYPE_ON_DEMAND,
        price_per_hour=0.12 if spot else 0.40,
        interruption_probability=0.05 if spot else 0.0,
    )
    for shape in (record.resources, record.allocatable):
        shape.resources.update({"cpu": CPU, "memory": MEMORY})
    record.labels.update({"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"})
    return record
