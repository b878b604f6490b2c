"""What a shard takes from a provider: the rules a machine record must keep to enter the inventory.

A record that breaks one is refused alone, under one of three reasons; the last good record of
that machine stays, and the rest of the list is used. Counting and logging the refusal is left to
the caller.
"""

from __future__ import annotations

from typing import Final

from bigfleet.model.errors import MachineError
from bigfleet.model.lifecycle import RECLAIMABLE, WITHOUT_HOST
from bigfleet.model.machine import Machine, MachineState

MAX_PRICE_PER_HOUR: Final = 9e12
"""Above this a price no longer fits in 64 bits of micro-dollars, in which the engine counts."""
LONGEST_BYTES: Final = 2**16 - 1
"""Of an id and of a host's reference, which are kept in columns."""

MOST_TAINTS: Final = 64
"""Of one machine: taints are compared with the tolerations of every need."""

_S = MachineState

_WITH_HOST: Final = frozenset({_S.IDLE, _S.CONFIGURING, _S.CONFIGURED, _S.DRAINING, _S.DELETING})


def validate_machine(machine: Machine) -> None:
    """Refuse a record that breaks a rule, with a MachineError that carries the reason."""
    _check_structure(machine)
    price, probability = machine.price_per_hour, machine.interruption_probability
    # Written so that NaN, which compares false with everything, fails too.
    if not 0.0 <= price <= MAX_PRICE_PER_HOUR:
        raise MachineError(
            f"machine {machine.id!r} has price_per_hour {price}: declare dollars of zero or more",
            "price",
        )
    if not 0.0 <= probability <= 1.0:
        raise MachineError(
            f"machine {machine.id!r} has interruption_probability {probability}: "
            "declare a number from 0 to 1",
            "interruption_probability",
        )


def _check_structure(machine: Machine) -> None:
    state = machine.state
    has_host = machine.host is not None and machine.host.ref != ""
    if not machine.id:
        raise MachineError("a machine has no id: every record needs the stable id of its slot")
    for what, text in (("id", machine.id), ("host", machine.host.ref if machine.host else "")):
        if 4 * len(text) > LONGEST_BYTES and len(text.encode()) > LONGEST_BYTES:
            raise MachineError(
                f"machine {machine.id[:80]!r} has a text of {len(text)} characters as its {what}: "
                f"use at most {LONGEST_BYTES} bytes"
            )
    if state is _S.UNSPECIFIED:
        raise MachineError(
            f"machine {machine.id!r} has no state: report one of Speculative to Failed"
        )
    if state is _S.SPECULATIVE and has_host:
        raise _broken(machine, "has a host: report the host from Creating on")
    if state in _WITH_HOST and not has_host:
        raise _broken(machine, "has no host: report the host's reference")
    if state in RECLAIMABLE and not machine.cluster:
        raise _broken(machine, "has no cluster: report the cluster it is bound to")
    if state in WITHOUT_HOST and machine.cluster:
        raise _broken(
            machine, f"has cluster {machine.cluster!r}: a machine is bound from Configuring on"
        )
    if state is _S.FAILED and not machine.last_error:
        raise _broken(machine, "has no last_error: report why it failed")
    if len(machine.taints) > MOST_TAINTS:
        raise MachineError(
            f"machine {machine.id!r} has {len(machine.taints)} taints: "
            f"declare at most {MOST_TAINTS}"
        )
    for name, amount in (*machine.resources.items(), *machine.effective_allocatable.items()):
        if amount < 0:
            raise _broken(machine, f"offers {amount} milli of {name!r}: report zero or more")


def _broken(machine: Machine, what: str) -> MachineError:
    return MachineError(f"machine {machine.id!r} is {machine.state.title} but {what}")
