"""Changes by columns: what a cycle decided and what clusters say, for many rows at once."""

import numpy as np
import pytest

from bigfleet.inventory import Inventory, InventoryError, UnknownRowError
from bigfleet.model import (
    Departure,
    Machine,
    MachineState,
    PenaltyBucket,
    Stamp,
)
from bigfleet.model.columns import Flag, Symbols

S = MachineState
ROWS = np.array([0, 2])


def stamp(sequence: int) -> Stamp:
    return Stamp("c-1", "s", "g", "f", 100, PenaltyBucket.ZERO, PenaltyBucket.PINNED, sequence)


@pytest.fixture
def inventory() -> Inventory:
    inventory = Inventory(Symbols())
    inventory.load([Machine(f"m-{i}", S.IDLE) for i in range(4)])
    return inventory


def machines(inventory: Inventory) -> list[Machine]:
    return [inventory.get(f"m-{i}") or pytest.fail("gone") for i in range(4)]


def test_states_change_for_the_rows_named_only(inventory: Inventory) -> None:
    inventory.set_state(ROWS, S.CONFIGURING)
    assert [m.state for m in machines(inventory)] == [S.CONFIGURING, S.IDLE, S.CONFIGURING, S.IDLE]
    inventory.set_state(ROWS, np.array([S.CONFIGURED, S.FAILED]))
    assert [m.state for m in machines(inventory)] == [S.CONFIGURED, S.IDLE, S.FAILED, S.IDLE]


def test_machines_are_bound_and_unbound(inventory: Inventory) -> None:
    clusters = inventory.snapshot().symbols.clusters
    inventory.bind(ROWS, np.array([clusters.of("c-1"), clusters.of("c-2")]))
    assert [m.cluster for m in machines(inventory)] == ["c-1", "", "c-2", ""]
    inventory.unbind(np.array([0]))
    assert [m.cluster for m in machines(inventory)] == ["", "", "c-2", ""]


def test_stamps_are_given_and_taken_away(inventory: Inventory) -> None:
    identity = inventory.snapshot().symbols.identity(stamp(0))
    inventory.stamp(ROWS, np.array([identity, identity]), np.array([7, 8]))
    assert [m.stamp for m in machines(inventory)] == [stamp(7), None, stamp(8), None]
    inventory.clear_stamp(np.array([2]))
    assert [m.stamp for m in machines(inventory)] == [stamp(7), None, None, None]


def test_machines_leave_for_a_need_or_for_none_and_may_stay(inventory: Inventory) -> None:
    identity = inventory.snapshot().symbols.identity(stamp(0))
    inventory.set_leaving(ROWS, np.array([identity, -1]), since_ns=5)
    columns = inventory.snapshot()
    assert columns.leaving_for.tolist() == [identity, -1, -1, -1]
    assert (columns.flags & Flag.LEAVING).tolist() == [1, 0, 1, 0]
    assert machines(inventory)[0].leaving == Departure(stamp(0), 5)
    assert machines(inventory)[2].leaving == Departure(None, 5)
    inventory.clear_leaving(ROWS)
    assert [m.leaving for m in machines(inventory)] == [None] * 4
    assert inventory.snapshot().leaving_for.tolist() == [-1] * 4


def test_what_clusters_say_of_their_nodes(inventory: Inventory) -> None:
    inventory.set_pods(ROWS, np.array([3, 0]))
    inventory.set_do_not_disrupt(ROWS, np.array([True, False]))
    inventory.set_not_ready(ROWS, np.array([0, 44]))
    first, other, third, _ = machines(inventory)
    assert (first.pods, first.do_not_disrupt, first.not_ready_since_ns) == (3, True, 0)
    assert (third.pods, third.do_not_disrupt, third.not_ready_since_ns) == (0, False, 44)
    assert (other.pods, other.do_not_disrupt, other.not_ready_since_ns) == (None, False, 0)
    assert dict(inventory.snapshot().not_ready_since) == {2: 44}
    inventory.set_not_ready(ROWS, 0)
    inventory.set_pods(ROWS, -1)
    assert inventory.snapshot().flags.tolist() == [Flag.DO_NOT_DISRUPT, 0, 0, 0]
    assert [m.pods for m in machines(inventory)] == [None] * 4


def test_announced_ends_come_and_go(inventory: Inventory) -> None:
    inventory.set_ending(ROWS, 99)
    columns = inventory.snapshot()
    assert dict(columns.ending_at) == {0: 99, 2: 99}
    assert (columns.flags & Flag.ENDING > 0).tolist() == [True, False, True, False]
    inventory.set_ending(np.array([0]), 0)
    assert dict(inventory.snapshot().ending_at) == {2: 99}
    assert dict(columns.ending_at) == {0: 99, 2: 99}


def test_exclusion_and_idle_times(inventory: Inventory) -> None:
    inventory.set_excluded(ROWS, True)
    inventory.set_idle_since(ROWS, np.array([1, 2]))
    assert [m.excluded for m in machines(inventory)] == [True, False, True, False]
    assert [m.idle_since_ns for m in machines(inventory)] == [1, 0, 2, 0]
    inventory.set_excluded(np.array([0]), False)
    assert [m.excluded for m in machines(inventory)] == [False, False, True, False]


def test_a_change_of_no_rows_is_none(inventory: Inventory) -> None:
    before = machines(inventory)
    inventory.set_state(np.array([], np.int64), S.FAILED)
    inventory.set_leaving(np.array([], np.int64), -1)
    assert machines(inventory) == before


@pytest.mark.parametrize("row", [-1, 1, 4])
def test_rows_without_a_machine_are_refused(inventory: Inventory, row: int) -> None:
    inventory.remove("m-1")
    with pytest.raises(UnknownRowError, match=f"row {row} holds no machine"):
        inventory.set_state(np.array([0, row]), S.FAILED)
    with pytest.raises(UnknownRowError):
        Inventory(Symbols()).set_pods(np.array([row]), 1)


def test_no_row_becomes_a_hole_by_its_state(inventory: Inventory) -> None:
    with pytest.raises(InventoryError, match="remove machines by id"):
        inventory.set_state(ROWS, S.UNSPECIFIED)
    assert len(inventory.rows()) == 4
