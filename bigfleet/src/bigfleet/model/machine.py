"""Machines: a slot with a stable id, from quota slot to bound host, and what is remembered of whom
it serves.

This is the value that crosses package borders, one machine at a time. Fleets are held in columns
by the inventory; which moves between states are legal is told in `lifecycle`, and which records a
shard takes in `validation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from operator import attrgetter
from typing import Final

from bigfleet.model.amounts.penalty import PenaltyBucket
from bigfleet.model.amounts.resources import Resources
from bigfleet.model.demand.need import Need, StampKey
from bigfleet.model.demand.taints import Taint
from bigfleet.model.errors import MachineError

LABEL_INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
LABEL_ZONE: Final = "topology.kubernetes.io/zone"
LABEL_CAPACITY_TYPE: Final = "bigfleet.lucy.sh/capacity-type"
LABEL_ARCH: Final = "kubernetes.io/arch"
LABEL_OS: Final = "kubernetes.io/os"
LABEL_HOSTNAME: Final = "kubernetes.io/hostname"
"""What every node has, each a value of its own, and no provider can say of a slot."""

_MICRO: Final = 1_000_000


class MachineState(IntEnum):
    """Where a machine is in its life; the numbers are those of the wire."""

    UNSPECIFIED = 0
    SPECULATIVE = 1
    CREATING = 2
    IDLE = 3
    CONFIGURING = 4
    CONFIGURED = 5
    DRAINING = 6
    DELETING = 7
    FAILED = 8

    @property
    def title(self) -> str:
        """The state as people write it, as in `Configured`."""
        return _STATE_TITLES[self]


class CapacityType(IntEnum):
    """How a machine is paid for, and so whether it may be given back; the numbers of the wire."""

    UNSPECIFIED = 0
    BARE_METAL = 1
    RESERVED = 2
    ON_DEMAND = 3
    SPOT = 4

    @property
    def label(self) -> str:
        """The value of the capacity-type label, as in `bare-metal`; empty when unspecified."""
        return _CAPACITY_LABELS[self]

    @property
    def camel(self) -> str:
        """The name in files and listings, as in `BareMetal`; empty when unspecified."""
        return _CAPACITY_CAMELS[self]

    @classmethod
    def from_camel(cls, text: str) -> CapacityType:
        """The type a file's name stands for."""
        return _capacity_named(text, _CAPACITY_CAMELS)


@dataclass(frozen=True, slots=True)
class HostRef:
    """A real host: the provider's (for example regional) name, and its own id of the host."""

    provider: str = ""
    ref: str = ""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a machine remembers of the need it was taken for.

    `sequence` counts stamps in the order they were given.
    """

    cluster: str
    shape: str
    group: str
    fingerprint: str
    priority: int
    interruption: PenaltyBucket
    reclamation: PenaltyBucket
    sequence: int
    size_class: str = ""

    @classmethod
    def for_need(cls, need: Need, sequence: int) -> Stamp:
        """The stamp of a machine taken for this need."""
        profile = need.profile
        return cls(
            cluster=need.cluster,
            shape=profile.shape_fingerprint,
            group=need.group,
            fingerprint=profile.fingerprint,
            priority=profile.priority,
            interruption=profile.interruption,
            reclamation=profile.reclamation,
            sequence=sequence,
            size_class=need.size_class,
        )

    @property
    def key(self) -> StampKey:
        """What a need's `stamp_key` must equal for this stamp to be for it."""
        return (self.cluster, self.shape, self.group)


@dataclass(frozen=True, slots=True)
class Departure:
    """A machine on its way out, in its grace or draining, and for which stamp, if any."""

    for_stamp: Stamp | None = None
    since_ns: int = 0
    final: bool = False
    """The drain was requested: it goes on even if the need returns."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine. Times are Unix nanoseconds, 0 for none; resources milli-units; money dollars."""

    id: str
    state: MachineState
    host: HostRef | None = None
    provider: str = ""
    region: str = ""
    cluster: str = ""
    instance_type: str = ""
    zone: str = ""
    capacity_type: CapacityType = CapacityType.UNSPECIFIED
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    resources: Resources = field(default_factory=dict, hash=False)
    allocatable: Resources | None = field(default=None, hash=False)
    price_per_hour: float = 0.0
    interruption_probability: float = 0.0
    interruption_at_ns: int = 0
    stamp: Stamp | None = None
    leaving: Departure | None = None
    idle_since_ns: int = 0
    not_ready_since_ns: int = 0
    """Since when its cluster says it is not a Ready node; 0 when it is one, or nothing is known."""
    do_not_disrupt: bool = False
    pods: int | None = None
    last_error: str = ""
    excluded: bool = False
    """A person keeps it out of every decision."""
    taints: tuple[Taint, ...] = ()
    """What the provider declares for its node, in canonical order."""
    reserved: bool = False
    """Drained, or being drained, for another shard."""
    backing_off: bool = False
    """Free, and left alone for a while because an action on it failed."""

    @property
    def is_kept_out(self) -> bool:
        """Whether a decision must leave it alone, whatever the reason."""
        return self.excluded or self.reserved or self.backing_off

    @property
    def effective_allocatable(self) -> Resources:
        """What the machine really gives: allocatable, or the base shape where that is not known."""
        return self.resources if self.allocatable is None else self.allocatable

    @property
    def price_micro(self) -> int:
        """Price per hour in whole micro-dollars, halves to even, as a column of doubles rounds."""
        return round(self.price_per_hour * _MICRO)

    def but(self, **changes: object) -> Machine:
        """The same machine but for these; a third of what `dataclasses.replace` takes."""
        values = list(_values(self))
        for name, value in changes.items():
            values[_PLACES[name]] = value
        return Machine(*values)


_NAMES: Final = tuple(each.name for each in fields(Machine))
_PLACES: Final = {name: place for place, name in enumerate(_NAMES)}
_values = attrgetter(*_NAMES)


def _capacity_named(text: str, names: Mapping[CapacityType, str]) -> CapacityType:
    for capacity_type, name in names.items():
        if name == text:
            return capacity_type
    known = ", ".join(name for name in names.values() if name)
    raise MachineError(f"capacity type {text!r} is unknown: use one of {known}")


_STATE_TITLES: Final = {state: state.name.capitalize() for state in MachineState}
_CAPACITY_LABELS: Final = {
    CapacityType.UNSPECIFIED: "",
    CapacityType.BARE_METAL: "bare-metal",
    CapacityType.RESERVED: "reserved",
    CapacityType.ON_DEMAND: "on-demand",
    CapacityType.SPOT: "spot",
}
_CAPACITY_CAMELS: Final = {
    CapacityType.UNSPECIFIED: "",
    CapacityType.BARE_METAL: "BareMetal",
    CapacityType.RESERVED: "Reserved",
    CapacityType.ON_DEMAND: "OnDemand",
    CapacityType.SPOT: "Spot",
}
