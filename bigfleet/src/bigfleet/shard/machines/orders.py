"""What is to be done to one machine, with everything its execution needs: a value.

Orders outlive the cycle that decided them and its columns. `decide.orders` makes them of a plan,
`act` carries them out. `begun` is what a machine looks like once its order is on its way, so that
the next cycle counts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from bigfleet.decision import ActionKind
from bigfleet.model import Departure, Machine, MachineState, Profile, Stamp

S = MachineState

STARTS_IN: Final = {
    ActionKind.BOOTSTRAP: S.IDLE,
    ActionKind.PROVISION: S.SPECULATIVE,
    ActionKind.RECLAIM: S.CONFIGURED,
    ActionKind.PREEMPT: S.CONFIGURED,
    ActionKind.KEEP: S.CONFIGURED,
    ActionKind.DELETE: S.IDLE,
}


FOR_A_PERSON: Final = "an administrator asked for it"
FOR_ANOTHER_SHARD: Final = "another shard needs it"


class ReclaimCause(IntEnum):
    """Why a machine leaves its cluster; the wire's numbers (ReclaimReason)."""

    NOT_NEEDED = 1
    PREEMPTED = 2
    ENDING = 3
    ADMIN = 4
    OTHER_SHARD = 5


@dataclass(frozen=True, slots=True)
class Order:
    """One thing to do to one machine."""

    kind: ActionKind
    machine: str
    provider: str
    cluster: str
    """Destination of Bootstrap and Provision; the cluster being left by Reclaim and Preempt."""
    stamp: Stamp | None = None
    """For whom: what the machine carries from now on, or, when preempted, once it is Idle."""
    profile: Profile | None = None
    """What the need asks of the machine; None where there is no need."""
    grace_seconds: int = 0
    reason: str = ""
    fingerprint: str = ""
    group: str = ""
    priority: int = 0
    """Of the need it is done for; 0 for none."""
    dollars_per_hour: float = 0.0
    capacity_type: int = 0
    is_ending: bool = False
    """The provider has announced the machine's end."""
    final: bool = False
    """Of a Reclaim on request: returning demand does not call it off."""

    @property
    def reclaim_cause(self) -> ReclaimCause:
        """Why the machine of a Reclaim or a Preempt leaves."""
        if self.kind is ActionKind.PREEMPT:
            return ReclaimCause.PREEMPTED
        if self.is_ending:
            return ReclaimCause.ENDING
        if not self.final:
            return ReclaimCause.NOT_NEEDED
        is_moved = self.reason.startswith(FOR_ANOTHER_SHARD)
        return ReclaimCause.OTHER_SHARD if is_moved else ReclaimCause.ADMIN


def begun(machine: Machine, order: Order, now: int = 0) -> Machine:
    """The machine with an order on its way."""
    match order.kind:
        case ActionKind.PROVISION:
            return machine.but(state=S.CREATING, stamp=order.stamp)
        case ActionKind.BOOTSTRAP:
            return machine.but(
                state=S.CONFIGURING,
                cluster=order.cluster,
                stamp=order.stamp,
                idle_since_ns=0,
            )
        case ActionKind.DELETE:
            return machine.but(state=S.DELETING, stamp=None, idle_since_ns=0)
        case ActionKind.KEEP:
            # It may be claimed back by another need of its shape than the one it served.
            return machine.but(leaving=None, stamp=order.stamp or machine.stamp)
        case ActionKind.RECLAIM:
            return machine.but(leaving=Departure(None, now, order.final))
        case ActionKind.PREEMPT:
            return machine.but(leaving=Departure(order.stamp, now))
