"""What an observed record means for a machine that is known: a pure rule.

A provider knows the host, the cluster and the state; only the shard knows for whom a machine is
being created, that it is on its way out, since when it is idle. `merge` puts both together. What a
provider says is always taken, also when the state jumped; what is lost, freed or delivered by it
is said beside it, for counters, frames and the next cycle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from bigfleet.model import Departure, Machine, MachineState, Stamp
from bigfleet.model.lifecycle import BOUND, HELD, INBOUND, LEGAL_MOVES, RECLAIMABLE, STAMPED
from bigfleet.shard.state.journal import JournalEntry

S = MachineState

_ENDS: Final = {
    S.CREATING: frozenset({S.IDLE, S.FAILED}),
    S.CONFIGURING: frozenset({S.CONFIGURED, S.FAILED}),
    S.DRAINING: frozenset({S.IDLE, S.FAILED}),
    S.DELETING: frozenset({S.SPECULATIVE, S.FAILED}),
}


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The machine from now on, and what the record tells."""

    machine: Machine
    changed: bool = False
    jumped: bool = False
    """The state changed by a step the lifecycle does not know, or a bound machine changed its
    cluster.
    """
    lost: bool = False
    """It served a cluster and no longer can."""
    freed: bool = False
    """A need can take it now."""
    delivered: bool = False
    """It serves its cluster now."""


def ends_transition(known: Machine, seen: Machine) -> bool:
    """Whether a record shows the end of what the machine is known to be doing.

    Only such records are taken when it is not certain that they are newer than what is known.
    """
    if seen.state not in _ENDS.get(known.state, frozenset()):
        return False
    return known.state is not S.CONFIGURING or seen.cluster == known.cluster


def merge(known: Machine | None, seen: Machine, now: int) -> MergeResult:
    """The observed record, with what only the shard knows."""
    if known is None:
        return _first_sight(seen, now)
    moved = known.state is not seen.state
    if seen.state is known.state is S.CONFIGURING and not seen.cluster:
        # A record may leave out the cluster until the machine is its node: no other cluster has it.
        seen = seen.but(cluster=known.cluster)
    machine = seen.but(
        stamp=_stamp(known, seen),
        leaving=_leaving(known, seen, now),
        idle_since_ns=_idle_since(known, seen, now),
        not_ready_since_ns=known.not_ready_since_ns if _same_binding(known, seen) else 0,
        do_not_disrupt=known.do_not_disrupt and _same_binding(known, seen),
        pods=known.pods if _same_binding(known, seen) else None,
        excluded=known.excluded,
        reserved=known.reserved,
        backing_off=known.backing_off,
    )
    return MergeResult(
        machine,
        changed=machine != known,
        jumped=_is_rebound(known, seen) or (moved and not _is_step(known.state, seen.state)),
        lost=_is_lost(known, seen),
        freed=moved and seen.state in (S.IDLE, S.SPECULATIVE),
        delivered=moved and seen.state is S.CONFIGURED,
    )


def _first_sight(seen: Machine, now: int) -> MergeResult:
    idle = now if seen.state is S.IDLE and not seen.idle_since_ns else seen.idle_since_ns
    leaving = seen.leaving
    if seen.state is S.DRAINING and leaving is None:
        leaving = Departure(None, now)
    machine = seen.but(idle_since_ns=idle, leaving=leaving)
    return MergeResult(machine, changed=True, freed=seen.state in (S.IDLE, S.SPECULATIVE))


def _stamp(known: Machine, seen: Machine) -> Stamp | None:
    if known.state is S.DRAINING and seen.state is S.IDLE:
        return known.leaving.for_stamp if known.leaving else None
    if seen.state not in STAMPED:
        return None
    if seen.cluster and known.stamp is not None and known.stamp.cluster != seen.cluster:
        # Another cluster's binding: what was planned with it is over.
        return seen.stamp
    if seen.state is S.CREATING and known.state not in (S.CREATING, S.SPECULATIVE):
        return None
    # A record names no shape where an older release wrote it; what was stamped here is complete.
    return seen.stamp if known.stamp is None else known.stamp


def _leaving(known: Machine, seen: Machine, now: int) -> Departure | None:
    if seen.state not in RECLAIMABLE:
        return None
    if seen.state is S.DRAINING and known.leaving is None:
        return Departure(None, now)
    return known.leaving if seen.cluster == known.cluster else None


def _idle_since(known: Machine, seen: Machine, now: int) -> int:
    if seen.state is not S.IDLE:
        return 0
    return known.idle_since_ns if known.state is S.IDLE and known.idle_since_ns else now


def _same_binding(known: Machine, seen: Machine) -> bool:
    return bool(seen.cluster) and seen.cluster == known.cluster


def _is_step(before: MachineState, after: MachineState) -> bool:
    # Healing is the provider's: out of Failed every way is known.
    return before is S.FAILED or after in LEGAL_MOVES[before]


def _is_rebound(known: Machine, seen: Machine) -> bool:
    # Between two clusters lies a drain, which only the shard orders.
    bound = known.state in HELD and seen.state in HELD
    return bound and bool(known.cluster and seen.cluster) and known.cluster != seen.cluster


def _is_lost(known: Machine, seen: Machine) -> bool:
    return known.state in BOUND and bool(known.cluster) and seen.state is S.FAILED


# After a restart: what the journal adds to a machine that is listed for the first time.
#
# A provider says where a machine is; the journal says for whom it was on its way there. Where the
# two do not fit, the provider is right and the entry has outlived its use.


def restored(machine: Machine, entry: JournalEntry, now: int) -> Machine:
    """The machine with what was remembered of it."""
    if machine.state in RECLAIMABLE and entry.leaving:
        return replace(machine, leaving=Departure(entry.for_stamp, now, entry.final))
    if machine.state not in INBOUND or machine.stamp is not None:
        return machine
    # A drain that ended while no shard ran left the machine to whom it was drained for.
    stamp = entry.for_stamp if entry.leaving else entry.stamp
    if (
        machine.state is MachineState.CONFIGURING
        and stamp is not None
        and stamp.cluster != machine.cluster
    ):
        return machine
    return replace(machine, stamp=stamp)


def is_worth_remembering(machine: Machine) -> bool:
    """Whether the shard knows something of a machine that no provider could say."""
    if machine.state in INBOUND:
        return machine.stamp is not None
    return machine.state in RECLAIMABLE and machine.leaving is not None
