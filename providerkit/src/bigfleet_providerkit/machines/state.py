"""The words of a machine's life: states, capacity types, and the four mutations between them.

Numbers are those of the wire, so that encoding translates nothing. What a mutation may start from,
passes through and aims at stands in one table, `Kind`; everything else asks it.
"""

import enum


class State(enum.IntEnum):
    """Where a machine stands; numbers of MachineState."""

    SPECULATIVE = 1
    CREATING = 2
    IDLE = 3
    CONFIGURING = 4
    CONFIGURED = 5
    DRAINING = 6
    DELETING = 7
    FAILED = 8

    @property
    def word(self) -> str:
        """The state as metrics and messages spell it: Speculative, Creating, ..."""
        return self.name.capitalize()


class CapacityType(enum.IntEnum):
    """How a machine is paid for; numbers of the wire's CapacityType."""

    BARE_METAL = 1
    RESERVED = 2
    ON_DEMAND = 3
    SPOT = 4

    @property
    def word(self) -> str:
        """The type as ids and metrics spell it: BareMetal, Reserved, OnDemand, Spot."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def key(self) -> str:
        """The type as offerings spell it: bare_metal, reserved, on_demand, spot."""
        return self.name.lower()


class Kind(enum.Enum):
    """A mutation: where it may start, what it passes through, where it ends."""

    CREATE = ("create", State.SPECULATIVE, State.CREATING, State.IDLE)
    CONFIGURE = ("configure", State.IDLE, State.CONFIGURING, State.CONFIGURED)
    DRAIN = ("drain", State.CONFIGURED, State.DRAINING, State.IDLE)
    DELETE = ("delete", State.IDLE, State.DELETING, State.SPECULATIVE)

    def __init__(self, word: str, source: State, transitional: State, target: State) -> None:
        self.word = word
        self.source = source
        self.transitional = transitional
        self.target = target

    @property
    def method(self) -> str:
        """The RPC's name: Create, Configure, Drain, Delete."""
        return self.word.capitalize()


KINDS = {kind.word: kind for kind in Kind}
IN_FLIGHT = {kind.transitional: kind for kind in Kind}
WITH_HOST = frozenset(
    {State.IDLE, State.CONFIGURING, State.CONFIGURED, State.DRAINING, State.DELETING}
)
