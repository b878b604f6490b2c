"""Small oracles: what a correct provider answers, written as plainly as possible.

The fence of one pair, the graph of states, the table of fields by state, and quantities. They are
tested alone, without a provider; behaviours compare what they see with them.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType

from bigfleet_api.v1alpha1 import provider_pb2 as pb

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)

SPECULATIVE = pb.MACHINE_STATE_SPECULATIVE
CREATING = pb.MACHINE_STATE_CREATING
IDLE = pb.MACHINE_STATE_IDLE
CONFIGURING = pb.MACHINE_STATE_CONFIGURING
CONFIGURED = pb.MACHINE_STATE_CONFIGURED
DRAINING = pb.MACHINE_STATE_DRAINING
DELETING = pb.MACHINE_STATE_DELETING
FAILED = pb.MACHINE_STATE_FAILED

TRANSITIONAL = frozenset({CREATING, CONFIGURING, DRAINING, DELETING})
RESTING = frozenset({SPECULATIVE, IDLE, CONFIGURED, FAILED})
# Create, Configure, Drain: every state on the way, in order.
ROUND = (SPECULATIVE, CREATING, IDLE, CONFIGURING, CONFIGURED, DRAINING, IDLE)

_SUFFIXES: Mapping[str, Decimal] = MappingProxyType(
    {
        "n": Decimal("1e-9"),
        "u": Decimal("1e-6"),
        "m": Decimal("1e-3"),
        "": Decimal(1),
        "k": Decimal(10**3),
        "M": Decimal(10**6),
        "G": Decimal(10**9),
        "T": Decimal(10**12),
        "P": Decimal(10**15),
        "E": Decimal(10**18),
        "Ki": Decimal(2**10),
        "Mi": Decimal(2**20),
        "Gi": Decimal(2**30),
        "Ti": Decimal(2**40),
        "Pi": Decimal(2**50),
        "Ei": Decimal(2**60),
    }
)
_QUANTITY = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))([eE][+-]?\d+|[A-Za-z]*)")


def word(state: int) -> str:
    """CONFIGURED instead of 5; a number outside the enum stays a number."""
    try:
        return pb.MachineState.Name(pb.MachineState.ValueType(state)).removeprefix("MACHINE_STATE_")
    except ValueError:
        return f"state {state}"


def quantity(text: str) -> Decimal:
    """The value of a Kubernetes quantity; ValueError when it is none."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a quantity")
    number, suffix = found.groups()
    if suffix in _SUFFIXES:
        return Decimal(number) * _SUFFIXES[suffix]
    if suffix[1:].lstrip("+-").isdigit():
        return Decimal(number + suffix)
    raise ValueError(f"{text!r} has an unknown suffix")


@dataclass(slots=True)
class FenceOracle:
    """The highest accepted (epoch, sequence) of every (shard, machine)."""

    marks: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    def accepts(self, shard: str, machine: str, epoch: int, sequence: int) -> bool:
        """Whether this token passes; a passing one moves the mark."""
        mark = self.marks.get((shard, machine))
        if mark is not None and (epoch, sequence) <= mark:
            return False
        self.marks[shard, machine] = (epoch, sequence)
        return True


def misfit(machine: pb.Machine) -> str:
    """What is wrong with host, cluster and last_error for the state; empty when nothing is."""
    state, host, cluster = machine.state, bool(machine.host.ref), bool(machine.cluster)
    if state == SPECULATIVE and (host or cluster):
        return "SPECULATIVE with a host or a cluster"
    if state == CREATING and cluster:
        return f"CREATING with cluster {machine.cluster!r}"
    if state in (IDLE, CONFIGURING, CONFIGURED, DRAINING, DELETING) and not host:
        return f"{word(state)} without a host"
    if state in (CONFIGURED, DRAINING) and not cluster:
        return f"{word(state)} without a cluster"
    if state in (IDLE, DELETING) and cluster:
        return f"{word(state)} with cluster {machine.cluster!r}"
    if state == FAILED and not machine.last_error:
        return "FAILED without last_error"
    return ""


def price_misfit(machine: pb.Machine) -> str:
    """What is wrong with price and probability; empty when nothing is."""
    price, risk = machine.price_per_hour, machine.interruption_probability
    if not math.isfinite(price) or price < 0:
        return f"price_per_hour is {price}"
    if not 0 <= risk <= 1:
        return f"interruption_probability is {risk}"
    if machine.capacity_type == pb.CAPACITY_TYPE_SPOT and risk <= 0:
        return "SPOT with interruption_probability 0"
    return ""
