"""The bars of the inventory at 500,000 machines: memory, load, and what a snapshot costs."""

import gc
import tracemalloc
from dataclasses import replace
from time import process_time

import numpy as np

from bigfleet.inventory import Inventory, measure_memory
from bigfleet.inventory.memory import typical_machines
from bigfleet.model import MachineState
from bigfleet.model.columns import Symbols

MANY = 500_000


def test_a_machine_takes_64_bytes_in_columns_and_128_with_its_id() -> None:
    memory = measure_memory(MANY)
    assert memory["columns_per_machine"] <= 64
    assert memory["per_machine"] <= 128


def test_what_is_allocated_is_what_is_told() -> None:
    Inventory(Symbols()).load(typical_machines(10))
    gc.collect()
    tracemalloc.start()
    inventory = Inventory(Symbols())
    inventory.load(typical_machines(MANY))
    gc.collect()
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(inventory) == MANY
    assert allocated / MANY <= 128


def test_a_full_list_is_loaded_in_five_seconds() -> None:
    Inventory(Symbols()).load(typical_machines(10))
    shared = list(typical_machines(MANY))
    fresh = [replace(m, labels=dict(m.labels), resources=dict(m.resources)) for m in shared]
    for machines in (shared, fresh):
        inventory = Inventory(Symbols())
        begin = process_time()
        inventory.load(machines)
        assert process_time() - begin < 5


def test_a_snapshot_costs_columns_not_machines() -> None:
    inventory = Inventory(Symbols())
    inventory.load(typical_machines(MANY))
    rows = np.arange(0, MANY, 100)
    inventory.snapshot()
    begin = process_time()
    for _ in range(100):
        inventory.set_state(rows, MachineState.DRAINING)
        inventory.snapshot()
    assert process_time() - begin < 100 * 0.002
