"""After a restart: what the journal adds to a machine that is listed for the first time.

A provider says where a machine is; the journal says for whom it was on its way there. Where the
two do not fit, the provider is right and the entry has outlived its use.
"""

from __future__ import annotations

from dataclasses import replace

from bigfleet.model import Departure, Machine, MachineState
from bigfleet.model.lifecycle import INBOUND, RECLAIMABLE
from bigfleet.shard.state.journal import JournalEntry

S = MachineState


def restored(machine: Machine, entry: JournalEntry, now: int) -> Machine:
    """The machine with what was remembered of it."""
    if machine.state in RECLAIMABLE and entry.leaving:
        return replace(machine, leaving=Departure(entry.for_stamp, now, entry.final))
    if machine.state not in INBOUND or machine.stamp is not None:
        return machine
    # A drain that ended while no shard ran left the machine to whom it was drained for.
    stamp = entry.for_stamp if entry.leaving else entry.stamp
    if machine.state is S.CONFIGURING and stamp is not None and stamp.cluster != machine.cluster:
        return machine
    return replace(machine, stamp=stamp)


def is_worth_remembering(machine: Machine) -> bool:
    """Whether the shard knows something of a machine that no provider could say."""
    if machine.state in INBOUND:
        return machine.stamp is not None
    return machine.state in RECLAIMABLE and machine.leaving is not None
