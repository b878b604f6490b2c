"""What the inventory says of its memory."""

import pytest

from bigfleet.inventory import Inventory, measure_memory
from bigfleet.model import Machine, MachineState
from bigfleet.model.columns import Symbols


def test_memory_is_told_by_column_and_per_machine() -> None:
    memory = measure_memory(1000)
    assert memory["state"] == 1000
    assert memory["sequence"] == 8000
    assert memory["topology.bigfleet/rack"] == memory["order"] == memory["rank"] == 4000
    assert memory["columns_per_machine"] <= 64
    assert memory["per_machine"] <= 128


def test_rare_values_are_counted_too() -> None:
    inventory = Inventory(Symbols())
    assert inventory.memory()["per_machine"] > 0
    inventory.put(Machine("m", MachineState.FAILED, last_error="x" * 500, interruption_at_ns=1))
    assert inventory.memory()["sparse"] >= 660


def test_growing_by_single_machines_keeps_little_room_to_spare() -> None:
    inventory = Inventory(Symbols())
    inventory.load(Machine(f"m-{i}", MachineState.IDLE) for i in range(2000))
    before = inventory.memory()["columns_per_machine"]
    inventory.put(Machine("one-more", MachineState.IDLE))
    inventory.snapshot()
    assert inventory.memory()["columns_per_machine"] == pytest.approx(before, rel=0.15)
