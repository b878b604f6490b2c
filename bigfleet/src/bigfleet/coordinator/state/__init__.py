"""The slow facts of a fleet, as tables and the commands that change them.

    values    what the tables hold
    commands  everything that may be asked of the state
    errors    refusals, each with its status
    tables    `State`: the tables and what is found through them
    changes   what a command would do: rows put and deleted
    rules     `apply`: what a command changes, or why it is refused
    moves     the rules of moves between shards
    rows      changes and tables as the rows of a store

Nothing here waits, reads a clock or knows a store.
"""

from bigfleet.coordinator.state.changes import Changes, Deletion, Put
from bigfleet.coordinator.state.commands import (
    AddShard,
    AssignDomain,
    BindCluster,
    Command,
    ContactClusters,
    ForgetAddress,
    ForgetMoves,
    PlanMoves,
    QuotaShift,
    RegisterProvider,
    RemoveProvider,
    RemoveShard,
    SetQuota,
    StepMove,
    UnassignDomain,
)
from bigfleet.coordinator.state.errors import CorruptRowError, RefusalError, StateError
from bigfleet.coordinator.state.rows import rows_of, state_of
from bigfleet.coordinator.state.rules import apply
from bigfleet.coordinator.state.tables import State
from bigfleet.coordinator.state.values import (
    Binding,
    Domain,
    Move,
    Phase,
    Pool,
    Provider,
    Shard,
    Tier,
    Wish,
    is_short,
)

__all__ = [
    "AddShard",
    "AssignDomain",
    "BindCluster",
    "Binding",
    "Changes",
    "Command",
    "ContactClusters",
    "CorruptRowError",
    "Deletion",
    "Domain",
    "ForgetAddress",
    "ForgetMoves",
    "Move",
    "Phase",
    "PlanMoves",
    "Pool",
    "Provider",
    "Put",
    "QuotaShift",
    "RefusalError",
    "RegisterProvider",
    "RemoveProvider",
    "RemoveShard",
    "SetQuota",
    "Shard",
    "State",
    "StateError",
    "StepMove",
    "Tier",
    "UnassignDomain",
    "Wish",
    "apply",
    "is_short",
    "rows_of",
    "state_of",
]
