"""The refusals of the inventory, one small tree.

    InventoryError(ValueError)
    ├── DuplicateMachineError   one id twice in a list of machines
    ├── UnfitMachineError       a value that no column can hold
    └── UnknownRowError         a row number that holds no machine

A refused call changes nothing.
"""

from __future__ import annotations


class InventoryError(ValueError):
    """Something the inventory does not take."""


class DuplicateMachineError(InventoryError):
    """One id twice in a list of machines."""


class UnfitMachineError(InventoryError):
    """A machine with a value that no column can hold."""


class UnknownRowError(InventoryError):
    """A row number that holds no machine."""
