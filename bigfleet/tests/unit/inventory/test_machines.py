"""Putting, finding and removing machines; what the inventory refuses."""

from dataclasses import replace

import pytest

from bigfleet.inventory import (
    DuplicateMachineError,
    Inventory,
    InventoryError,
    UnfitMachineError,
    UnknownRowError,
)
from bigfleet.model import HostRef, Machine, MachineState
from bigfleet.model.columns import Symbols

S = MachineState


def machine(machine_id: str, state: MachineState = S.IDLE, **fields: object) -> Machine:
    return replace(Machine(machine_id, state, host=HostRef("p", f"h-{machine_id}")), **fields)  # type: ignore[arg-type]


@pytest.fixture
def inventory() -> Inventory:
    return Inventory(Symbols())


def test_a_machine_is_found_by_its_id(inventory: Inventory) -> None:
    row = inventory.put(machine("m-1"))
    assert inventory.row("m-1") == row
    assert inventory.id_of(row) == "m-1"
    assert "m-1" in inventory
    assert inventory.get("m-1") == machine("m-1")
    assert list(inventory) == [machine("m-1")]


def test_who_is_not_there_has_no_row(inventory: Inventory) -> None:
    inventory.put(machine("m-1"))
    assert inventory.row("m-2") == -1
    assert inventory.row("\ud800") == -1
    assert inventory.get("m-2") is None
    assert "m-2" not in inventory
    assert 7 not in inventory
    assert not inventory.remove("m-2")


def test_replacing_a_machine_keeps_its_row(inventory: Inventory) -> None:
    row = inventory.put(machine("m-1"))
    inventory.put(machine("m-2"))
    assert inventory.put(machine("m-1", S.FAILED, last_error="Boom: gone")) == row
    assert len(inventory) == 2
    found = inventory.get("m-1")
    assert found is not None
    assert (found.state, found.last_error) == (S.FAILED, "Boom: gone")
    inventory.put(machine("m-1"))
    assert inventory.get("m-1") == machine("m-1")


def test_the_row_of_a_removed_machine_is_given_to_the_next(inventory: Inventory) -> None:
    rows = inventory.put_many([machine(f"m-{i}", last_error="x") for i in range(3)])
    assert inventory.remove("m-1")
    assert inventory.rows().tolist() == [rows[0], rows[2]]
    assert inventory.put(machine("m-9")) == rows[1]
    assert inventory.get("m-1") is None
    assert inventory.get("m-9") == machine("m-9")


def test_many_machines_may_come_and_go_under_few_rows(inventory: Inventory) -> None:
    for i in range(3000):
        inventory.put(machine(f"m-{i}"))
        if i >= 10:
            assert inventory.remove(f"m-{i - 10}")
    assert sorted(m.id for m in inventory) == [f"m-{i}" for i in range(2990, 3000)]
    assert inventory.rows().max() < 20
    assert [inventory.row(f"m-{i}") for i in range(2990)] == [-1] * 2990


def test_texts_of_machines_that_went_are_squeezed_out(inventory: Inventory) -> None:
    for round_ in range(20):
        fleet = [machine(f"{round_:02}-{i:03}" * 10, last_error="x") for i in range(150)]
        inventory.put_many(fleet)
        assert sorted(inventory, key=lambda m: m.id) == fleet
        for each in fleet:
            inventory.remove(each.id)
    memory = inventory.memory()
    assert memory["ids"] < 100_000
    assert memory["hosts"] < 100_000
    assert memory["sparse"] == 0


def test_an_id_listed_twice_is_refused_by_name(inventory: Inventory) -> None:
    inventory.load([machine("m-1")])
    with pytest.raises(DuplicateMachineError, match="'m-3' is listed twice"):
        inventory.load([machine("m-2"), machine("m-3"), machine("m-3", S.CREATING)])
    assert list(inventory) == [machine("m-1")]
    with pytest.raises(DuplicateMachineError, match="'m-1' is listed twice"):
        inventory.put_many([machine("m-1", S.FAILED), machine("m-1", S.FAILED)])
    assert list(inventory) == [machine("m-1")]


def test_loading_forgets_what_was_there(inventory: Inventory) -> None:
    inventory.put(machine("m-1"))
    inventory.load(iter([machine("m-2")]))
    assert [m.id for m in inventory] == ["m-2"]
    inventory.load([])
    assert len(inventory) == 0
    assert len(inventory.snapshot()) == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": ""}, "has no id"),
        ({"id": "\ud800"}, "not Unicode"),
        ({"id": "m" * 70_000}, "longer than 65535 bytes"),
        ({"state": S.UNSPECIFIED}, "has no state"),
        ({"pods": -1}, "less than no pods"),
        ({"pods": 2**31}, "'bad' has a number of more than 64 bits"),
        ({"idle_since_ns": 2**63}, "'bad' has a number of more than 64 bits"),
        ({"price_per_hour": float("nan")}, "'bad' has a price"),
        ({"price_per_hour": 1e300}, "'bad' has a price"),
        ({"interruption_probability": float("nan")}, "'bad' has a probability"),
        ({"host": HostRef("p", "\ud800")}, "host reference '\\\\ud800' is not Unicode"),
    ],
)
def test_a_machine_no_column_can_hold_is_refused_and_changes_nothing(
    inventory: Inventory, fields: dict[str, object], message: str
) -> None:
    inventory.put(machine("m-1"))
    before = inventory.version
    bad = replace(machine("bad"), **fields)  # type: ignore[arg-type]
    with pytest.raises(UnfitMachineError, match=message):
        inventory.put_many([machine("m-1", S.FAILED), machine("m-2"), bad])
    assert list(inventory) == [machine("m-1")]
    assert inventory.version == before


def test_a_row_without_a_machine_has_no_id(inventory: Inventory) -> None:
    inventory.put_many([machine("m-1"), machine("m-2")])
    inventory.remove("m-1")
    for row in (-1, 0, 2):
        with pytest.raises(UnknownRowError, match=f"row {row} holds no machine"):
            inventory.id_of(row)


def test_machines_are_counted_by_state(inventory: Inventory) -> None:
    inventory.load([machine("m-1"), machine("m-2"), machine("m-3", S.CONFIGURED)])
    inventory.remove("m-2")
    counts = inventory.counts_by_state()
    assert counts[S.IDLE] == counts[S.CONFIGURED] == 1
    assert sum(counts.values()) == 2
    assert len(counts) == 8


def test_every_change_shows_in_the_version(inventory: Inventory) -> None:
    seen = [inventory.version]
    inventory.put(machine("m-1"))
    seen.append(inventory.version)
    inventory.remove("m-1")
    seen.append(inventory.version)
    inventory.load([machine("m-2")])
    seen.append(inventory.version)
    inventory.set_state(inventory.rows(), S.DELETING)
    seen.append(inventory.version)
    assert seen == sorted(set(seen))


def test_the_always_matchable_labels_cannot_be_topology() -> None:
    with pytest.raises(InventoryError, match=r"topology.kubernetes.io/zone"):
        Inventory(Symbols(), ["topology.kubernetes.io/zone"])
