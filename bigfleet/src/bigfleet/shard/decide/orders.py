"""A plan as orders.

Orders are made away from the event loop, at the end of the decision.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from bigfleet.decision import ActionKind, Plan
from bigfleet.model import MachineState, Stamp
from bigfleet.model.columns import MachineColumns
from bigfleet.shard.machines.book import Book
from bigfleet.shard.machines.orders import Order

I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
S = MachineState


def orders_of(plan: Plan, left_out: Bools | None = None) -> list[Order]:
    """The actions of a plan in the order they were decided, but for those to be left out."""
    stamps = _stamps(plan)
    chosen = np.ones(len(plan.actions), np.bool_) if left_out is None else ~left_out
    return [_order(plan, index, stamps) for index in np.flatnonzero(chosen).tolist()]


def beyond_budget(plan: Plan, budget: Mapping[str, int] | None) -> Bools:
    """Per action, whether it is a Reclaim of which its cluster has no more left.

    A cluster that lets go of thousands of machines may lose few of them now: orders are expensive
    to make, and would be made again in every cycle until the last of them has gone.
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
    book.stamp_rows(rows[still], given.identity[alone][still], given.sequence[alone][still])


def _unchanged(book: Book, fleet: MachineColumns, rows: I64) -> npt.NDArray[np.bool_]:
    """Which rows still hold the machine they held, in the state and cluster it was in."""
    now = book.snapshot()
    same: npt.NDArray[np.bool_] = (now.state[rows] == fleet.state[rows]) & (
        now.cluster[rows] == fleet.cluster[rows]
    )
    return same
