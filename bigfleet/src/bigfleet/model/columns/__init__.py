"""Fleet and demand as columns: what the inventory and the needs table hand to the engine.

One row per machine or need in typed arrays, text interned to integers, machines of the same
attributes sharing a class. These are values: a receiver only reads them.

    machines  one row per machine
    classes   attributes that machines share, and what they answer to requirements
    demand    one row per need
    symbols   texts as integers
"""

from bigfleet.model.columns.classes import ClassTable, Offering, Pool
from bigfleet.model.columns.demand import Demand
from bigfleet.model.columns.machines import KEPT_OUT, UNAVAILABLE, Flag, MachineColumns
from bigfleet.model.columns.symbols import Names, Symbols, renumbered

__all__ = [
    "KEPT_OUT",
    "UNAVAILABLE",
    "ClassTable",
    "Demand",
    "Flag",
    "MachineColumns",
    "Names",
    "Offering",
    "Pool",
    "Symbols",
    "renumbered",
]
