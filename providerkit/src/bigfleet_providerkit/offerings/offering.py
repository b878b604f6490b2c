"""One offering and the ids of its slots.

An offering says "so many slots of this type in this zone, paid for like this". The id pattern
`<provider>/<CapacityType>/<type>/<zone>/<NNN>` is the kit's alone: everyone else treats ids as
opaque text. Reading offerings from files is `parse`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bigfleet_providerkit.machines.state import CapacityType


@dataclass(frozen=True, slots=True)
class Offering:
    """A number of equal slots."""

    instance_type: str
    zone: str
    capacity_type: CapacityType
    count: int
    first: int = 0
    resources: Mapping[str, str] | None = None
    allocatable: Mapping[str, str] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    reserve: Mapping[str, str] | None = None
    price: float | None = None
    interruption: float | None = None
    image: Mapping[str, str] | str = ""
    disk_gb: int = 0
    reservation: str = ""
    placement_group: str = ""
    user_data: str = ""
    taints: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)
    pool: str = ""
    """Sets offerings apart that have type, zone and capacity type in common: image, taints ..."""
    size: str = ""
    """Sets offerings apart whose type comes in sizes; part of the ids, and a key of prices."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags for the cloud's own bills, beside those of `--tags`."""
    startup_taints: tuple[str, ...] = ()
    """Taints that something in the cluster takes away once the node is ready for Pods."""

    @property
    def sized_type(self) -> str:
        """The type with its size: `VM.Standard.E5.Flex.2o12g`."""
        return f"{self.instance_type}.{self.size}" if self.size else self.instance_type

    @property
    def type_word(self) -> str:
        """The type as the ids of its slots carry it: with size and pool, `m6i.large~gpu`."""
        return f"{self.sized_type}~{self.pool}" if self.pool else self.sized_type

    @property
    def key(self) -> tuple[CapacityType, str, str]:
        """What the ids of its slots have in common."""
        return (self.capacity_type, self.type_word, self.zone)

    def slot_ids(self, label: str) -> Iterator[str]:
        """The ids of its slots, lowest number first."""
        prefix = f"{label}/{self.capacity_type.word}/{self.type_word}/{self.zone}"
        for number in range(self.first, self.first + self.count):
            yield f"{prefix}/{number:03d}"
