"""The machines of one shard as columns, with the classes and orders the engine reads.

Owns storage and snapshots of machines; decides nothing.
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
