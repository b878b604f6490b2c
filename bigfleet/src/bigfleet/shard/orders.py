"""A plan as orders: what is to be done to which machine, with everything its execution needs.

Orders are values that outlive the cycle and its columns. They are made away from the event loop,
at the end of the decision. `begun` is what a machine looks like once its order is on its way, so
that the next cycle counts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.decision import ActionKind, Plan
from bigfleet.model import Leaving, Machine, MachineState, Profile, Stamp
from bigfleet.model.columns import MachineColumns
from bigfleet.shard.book import Book

I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
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
    """Of a Reclaim that somebody asked for: returning demand does not call it off."""

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


def orders_of(plan: Plan, left_out: Bools | None = None) -> list[Order]:
    """The actions of a plan in the order they were decided, but for those to be left out."""
    stamps = _stamps(plan)
    chosen = np.ones(len(plan.actions), np.bool_) if left_out is None else ~left_out
    return [_order(plan, index, stamps) for index in np.flatnonzero(chosen).tolist()]


def beyond_budget(plan: Plan, budget: Mapping[str, int] | None) -> Bools:
    """Per action, whether it is a Reclaim of which its cluster has no more left.

    A cluster that lets go of thousands of machines may lose few of them now: orders are dear to
    make, and would be made anew in every cycle until the last of them has gone.
    """
    actions, names = plan.actions, plan.fleet.symbols.clusters
    beyond = np.zeros(len(actions), np.bool_)
    if budget is None:
        return beyond
    reclaims = np.flatnonzero(actions.kind == ActionKind.RECLAIM)
    cluster = plan.fleet.cluster[actions.machine[reclaims]]
    by_cluster = np.argsort(cluster, kind="stable")
    ordered = cluster[by_cluster]
    place = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    left = np.array([budget.get(name, 0) for name in names] or [0], np.int64)
    beyond[reclaims[by_cluster]] = place >= left[ordered]
    return beyond


def _stamps(plan: Plan) -> dict[int, Stamp]:
    symbols = plan.fleet.symbols
    found: dict[int, Stamp] = {}
    for given in (plan.stamps, plan.preempted_for):
        columns = (given.machine.tolist(), given.identity.tolist(), given.sequence.tolist())
        for machine, identity, sequence in zip(*columns, strict=True):
            found[machine] = symbols.stamp(identity, sequence)
    return found


def _order(plan: Plan, index: int, stamps: dict[int, Stamp]) -> Order:
    fleet, action = plan.fleet, plan.action(index)
    row, cls = int(plan.actions.machine[index]), int(fleet.cls[plan.actions.machine[index]])
    classes, demand = fleet.classes, plan.demand
    profile = (
        demand.symbols.profiles[int(demand.profile[action.need])] if action.need >= 0 else None
    )
    stamp = stamps.get(row)
    if stamp is None and fleet.stamp[row] >= 0 and action.kind is ActionKind.BOOTSTRAP:
        stamp = fleet.symbols.stamp(int(fleet.stamp[row]), int(fleet.sequence[row]))
    return Order(
        kind=action.kind,
        machine=action.machine,
        provider=classes.pools[int(classes.pool[cls])][0],
        cluster=action.cluster,
        stamp=stamp,
        profile=profile,
        grace_seconds=action.grace_seconds,
        reason=action.reason,
        fingerprint=profile.fingerprint if profile else "",
        group=stamp.group if stamp else "",
        priority=profile.priority if profile else 0,
        dollars_per_hour=int(classes.price[cls]) / 1e6,
        capacity_type=int(classes.capacity_type[cls]),
        is_ending=row in fleet.ending_at,
    )


def settle_credits(plan: Plan, book: Book) -> None:
    """Write the stamps of machines that only changed the need they serve.

    Stamps that come with an action are written with it, because not every action is carried out.
    """
    given = plan.stamps
    alone = ~np.isin(given.machine, plan.actions.machine)
    rows = given.machine[alone].astype(np.int64)
    still = _unchanged(book, plan.fleet, rows)
    book.inventory.stamp(rows[still], given.identity[alone][still], given.sequence[alone][still])


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
            # Whoever claims it back may be another need of its shape than the one it served.
            return machine.but(leaving=None, stamp=order.stamp or machine.stamp)
        case ActionKind.RECLAIM:
            return machine.but(leaving=Leaving(None, now, order.final))
        case ActionKind.PREEMPT:
            return machine.but(leaving=Leaving(order.stamp, now))


def _unchanged(book: Book, fleet: MachineColumns, rows: I64) -> npt.NDArray[np.bool_]:
    """Which rows still hold the machine they held, in the state and cluster it was in."""
    now = book.inventory.snapshot()
    same: npt.NDArray[np.bool_] = (now.state[rows] == fleet.state[rows]) & (
        now.cluster[rows] == fleet.cluster[rows]
    )
    return same
