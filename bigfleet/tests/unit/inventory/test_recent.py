"""Machines that are kept as values beside the columns."""

import numpy as np

from bigfleet.inventory import Inventory
from bigfleet.inventory._recent import Recent
from bigfleet.model import Machine, MachineState
from bigfleet.model.columns import Symbols

S = MachineState


def machine(number: int, state: MachineState = S.IDLE) -> Machine:
    return Machine(id=f"m-{number}", state=state)


def test_the_first_to_come_is_the_first_to_go() -> None:
    recent = Recent(most=2)
    for row in range(3):
        recent.keep(row, machine(row))
    assert [recent.get(row) for row in range(3)] == [None, machine(1), machine(2)]


def test_of_very_many_none_is_kept_and_old_ones_go() -> None:
    recent = Recent(most=8)
    recent.keep(1, machine(1))
    recent.keep_all(range(3), [machine(row, S.CREATING) for row in range(3)])
    assert [recent.get(row) for row in range(3)] == [None, None, None]


def test_a_machine_is_put_together_once() -> None:
    inventory = Inventory(Symbols())
    inventory.load([machine(1)])
    assert inventory.get("m-1") is inventory.get("m-1")


def test_what_is_written_to_columns_is_read_from_them() -> None:
    inventory = Inventory(Symbols())
    inventory.load([machine(1), machine(2)])
    before = inventory.get("m-1")
    inventory.set_pods(np.array([inventory.row("m-1")]), 7)
    after = inventory.get("m-1")
    assert before is not None
    assert after == before.but(pods=7)
    assert inventory.get("m-2") == machine(2)


def test_a_row_that_is_used_again_shows_its_new_machine() -> None:
    inventory = Inventory(Symbols())
    inventory.load([machine(1)])
    assert inventory.get("m-1") == machine(1)
    inventory.remove("m-1")
    inventory.put(machine(2))
    assert inventory.get("m-1") is None
    assert inventory.get("m-2") == machine(2)
