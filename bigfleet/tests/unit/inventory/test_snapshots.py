"""Snapshots: cheap to take, and as they were for as long as they are held."""

import gc

import numpy as np
import pytest

from bigfleet.inventory import Inventory
from bigfleet.inventory._column import Column
from bigfleet.model import Machine, MachineState
from bigfleet.model.columns import Symbols

S = MachineState
RACK = "topology.bigfleet/rack"
ROWS = np.array([0, 2])


@pytest.fixture
def inventory() -> Inventory:
    inventory = Inventory(Symbols())
    inventory.load([Machine(f"m-{i}", S.IDLE, labels={RACK: f"r-{i}"}) for i in range(4)])
    return inventory


def test_a_snapshot_does_not_see_later_changes(inventory: Inventory) -> None:
    before = inventory.snapshot()
    inventory.set_state(ROWS, S.DELETING)
    inventory.set_not_ready(ROWS, 5)
    inventory.remove("m-1")
    inventory.put(Machine("a", S.IDLE, labels={RACK: "r-9"}))
    assert before.state.tolist() == [S.IDLE] * 4
    assert list(before.ids) == ["m-0", "m-1", "m-2", "m-3"]
    assert not before.not_ready_since
    assert before.topology[RACK].tolist() == [0, 1, 2, 3]
    assert before.order.tolist() == [0, 1, 2, 3]
    after = inventory.snapshot()
    assert after.state.tolist() == [S.DELETING, S.IDLE, S.DELETING, S.IDLE]
    assert [after.ids[row] for row in after.order] == ["a", "m-0", "m-2", "m-3"]


def test_a_snapshot_cannot_be_written_into(inventory: Inventory) -> None:
    columns = inventory.snapshot()
    arrays = [value for value in vars(columns).values() if isinstance(value, np.ndarray)]
    arrays += [*columns.topology.values(), columns.classes.price, columns.classes.whole]
    assert len(arrays) == 14
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_the_same_snapshot_is_given_until_something_changes(inventory: Inventory) -> None:
    first = inventory.snapshot()
    assert inventory.snapshot() is first
    inventory.set_pods(ROWS, 1)
    second = inventory.snapshot()
    assert second is not first
    first.symbols.resources.of("new-in-demand")
    assert inventory.snapshot() is not second


def test_only_columns_that_were_written_are_copied(inventory: Inventory) -> None:
    first = inventory.snapshot()
    inventory.set_state(ROWS, S.DELETING)
    second = inventory.snapshot()
    assert second.state is not first.state
    for name in ("cls", "cluster", "stamp", "flags", "pods", "order", "rank", "classes"):
        assert getattr(second, name) is getattr(first, name)
    assert second.topology[RACK] is first.topology[RACK]


def test_a_column_is_copied_once_for_many_writes() -> None:
    column = Column(np.int32)
    column.reserve(4)
    view = column.lend(4)
    column.write(ROWS, 1)
    copied = column.data
    column.write(ROWS, 2)
    assert column.data is copied
    assert view.tolist() == [0, 0, 0, 0]


def test_nothing_is_copied_when_the_snapshot_is_gone() -> None:
    column = Column(np.int32)
    column.reserve(4)
    held = column.data
    view = column.lend(4)
    del view
    gc.collect()
    column.write(ROWS, 1)
    assert column.data is held


def test_a_piece_of_a_snapshot_is_held_as_well() -> None:
    column = Column(np.int32)
    column.reserve(4)
    piece = column.lend(4)[1:3]
    gc.collect()
    column.write(np.arange(4), 1)
    assert piece.tolist() == [0, 0]


def test_writing_what_is_there_already_copies_nothing() -> None:
    column = Column(np.int32)
    column.reserve(4)
    view = column.lend(4)
    held = column.data
    column.write(ROWS, 0)
    assert column.data is held
    assert column.lend(4) is view


def test_views_of_several_lengths_are_all_protected() -> None:
    column = Column(np.int32)
    column.reserve(8)
    short, long = column.lend(2), column.lend(8)
    del long
    gc.collect()
    column.write(np.arange(8), 1)
    assert short.tolist() == [0, 0]


def test_ids_are_a_sequence(inventory: Inventory) -> None:
    ids = inventory.snapshot().ids
    assert len(ids) == 4
    assert ids[-1] == "m-3"
    assert list(ids[1:3]) == ["m-1", "m-2"]
    assert "m-2" in ids
    with pytest.raises(IndexError):
        ids[4]


def test_the_order_is_that_of_code_points(inventory: Inventory) -> None:
    ids = ["m", "m-10", "m-1\x00", "é", "\uffff", "\U0001f600", "M", "m-00", "z"]
    for machine_id in ids:
        inventory.put(Machine(machine_id, S.IDLE))
        inventory.snapshot()
    columns = inventory.snapshot()
    assert [columns.ids[row] for row in columns.order] == sorted([*ids, *list(columns.ids)[:4]])
    assert columns.rank[columns.order].tolist() == list(range(13))
