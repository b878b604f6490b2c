"""The machines of one shard as columns, with the classes and orders the engine reads.

Owns storage and snapshots of machines; decides nothing.

    inventory  `Inventory`: reads, writes, snapshots; the other modules are its parts
    memory     how much memory a large fleet takes, for benchmarks
"""

from bigfleet.inventory._topology import DEFAULT_TOPOLOGY_KEYS
from bigfleet.inventory.errors import (
    DuplicateMachineError,
    InventoryError,
    UnfitMachineError,
    UnknownRowError,
)
from bigfleet.inventory.inventory import Inventory
from bigfleet.inventory.memory import measure_memory

__all__ = [
    "DEFAULT_TOPOLOGY_KEYS",
    "DuplicateMachineError",
    "Inventory",
    "InventoryError",
    "UnfitMachineError",
    "UnknownRowError",
    "measure_memory",
]
