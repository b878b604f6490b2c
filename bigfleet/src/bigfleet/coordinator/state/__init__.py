"""The slow facts of a fleet, as tables and the commands that change them.

    values    what the tables hold
    commands  everything that can be asked of the state
    errors    refusals, each with its status
    tables    `FleetState`: the tables, and the indexes over them
    changes   what a command would do: rows put and deleted
    rules     `apply`: what a command changes, or why it is refused
    moves     the rules of moves between shards
    rows      changes and tables as the rows of a store

Nothing here waits or reads a clock. Of the store it knows the form of a row only.
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
from bigfleet.coordinator.state.tables import FleetState
from bigfleet.coordinator.state.values import (
    ClusterBinding,
    Domain,
    MachineShape,
    Move,
    MovePhase,
    Pool,
    ProviderEntry,
    ShardEntry,
    Tier,
    is_short,
)

__all__ = [
    "AddShard",
    "AssignDomain",
    "BindCluster",
    "Changes",
    "ClusterBinding",
    "Command",
    "ContactClusters",
    "CorruptRowError",
    "Deletion",
    "Domain",
    "FleetState",
    "ForgetAddress",
    "ForgetMoves",
    "MachineShape",
    "Move",
    "MovePhase",
    "PlanMoves",
    "Pool",
    "ProviderEntry",
    "Put",
    "QuotaShift",
    "RefusalError",
    "RegisterProvider",
    "RemoveProvider",
    "RemoveShard",
    "SetQuota",
    "ShardEntry",
    "StateError",
    "StepMove",
    "Tier",
    "UnassignDomain",
    "apply",
    "is_short",
    "rows_of",
    "state_of",
]
