"""Classes and topology columns: what machines share, and labels that would multiply classes."""

from dataclasses import replace

import numpy as np
import pytest

from bigfleet.inventory import DEFAULT_TOPOLOGY_KEYS, Inventory
from bigfleet.model import (
    LABEL_CAPACITY_TYPE,
    LABEL_INSTANCE_TYPE,
    LABEL_ZONE,
    CapacityType,
    Machine,
)
from bigfleet.model import MachineState as S
from bigfleet.model.columns import ClassTable, Symbols

RACK = "topology.bigfleet/rack"


def machine(machine_id: str, **fields: object) -> Machine:
    plain = Machine(
        machine_id,
        S.IDLE,
        provider="p",
        region="eu",
        instance_type="large",
        zone="z-a",
        capacity_type=CapacityType.SPOT,
        labels={"pool": "a"},
        resources={"cpu": 4_000, "memory": 16_500},
        price_per_hour=0.25,
        interruption_probability=0.1,
    )
    return replace(plain, **fields)  # type: ignore[arg-type]


@pytest.fixture
def inventory() -> Inventory:
    return Inventory(Symbols())


def classes(inventory: Inventory) -> ClassTable:
    return inventory.snapshot().classes


def test_machines_alike_share_a_class(inventory: Inventory) -> None:
    inventory.load(
        [machine("m-1"), machine("m-2", labels={"pool": "a"}), machine("m-3", zone="z-b")]
    )
    columns = inventory.snapshot()
    assert columns.cls[0] == columns.cls[1] != columns.cls[2]
    assert len(columns.classes) == 2


def test_the_order_inside_a_mapping_makes_no_other_class(inventory: Inventory) -> None:
    amounts = {"memory": 16_500, "cpu": 4_000}
    labels = {"pool": "a", "arch": "arm"}
    inventory.put(machine("m-1", labels=labels))
    inventory.put_many(
        [
            machine("m-2", labels=dict(reversed(labels.items()))),
            machine("m-3", labels=labels, resources=amounts),
        ]
    )
    assert len(classes(inventory)) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"provider": "q"}, {"region": "us"}, {"instance_type": "small"}, {"zone": "z-b"},
        {"capacity_type": CapacityType.ON_DEMAND}, {"labels": {"pool": "b"}},
        {"resources": {"cpu": 1}}, {"allocatable": {"cpu": 4_000, "memory": 16_500}},
        {"price_per_hour": 0.26}, {"interruption_probability": 0.2},
    ],
)  # fmt: skip
def test_whatever_differs_makes_another_class(
    inventory: Inventory, fields: dict[str, object]
) -> None:
    inventory.load([machine("m-1"), machine("m-2", **fields)])
    assert len(classes(inventory)) == 2


def test_a_class_says_what_its_machines_offer(inventory: Inventory) -> None:
    inventory.put(machine("m-1", allocatable={"cpu": 3_890, "gpu": 2_000}))
    table, names = classes(inventory), inventory.snapshot().symbols.resources
    offered = {
        name: (int(whole), int(milli))
        for name, whole, milli in zip(names, table.whole[0], table.milli[0], strict=True)
    }
    assert offered == {"cpu": (3, 890), "gpu": (2, 0)}
    assert table.price.tolist() == [250_000]
    assert table.probability.tolist() == [0.1]
    assert table.offerings[table.offering[0]] == ("p", "large", "z-a", CapacityType.SPOT)
    assert table.pools[table.pool[0]] == ("p", "eu")


def test_labels_of_a_class_are_those_requirements_see(inventory: Inventory) -> None:
    inventory.put(machine("m-1", labels={"pool": "a", LABEL_ZONE: "hidden", RACK: "r-1"}))
    assert classes(inventory).labels[0] == {
        "pool": "a",
        LABEL_ZONE: "z-a",
        LABEL_INSTANCE_TYPE: "large",
        LABEL_CAPACITY_TYPE: "spot",
    }
    found = inventory.get("m-1")
    assert found is not None
    assert found.labels == {"pool": "a", LABEL_ZONE: "hidden", RACK: "r-1"}


def test_a_slot_without_machines_is_used_again_under_a_higher_epoch(inventory: Inventory) -> None:
    inventory.load([machine("m-1"), machine("m-2", zone="z-b")])
    before = classes(inventory)
    inventory.put(machine("m-1", zone="z-c"))
    inventory.put(machine("m-2", zone="z-d"))
    inventory.put(machine("m-3", zone="z-e"))
    after = classes(inventory)
    assert len(after) == 3
    assert sorted(labels[LABEL_ZONE] for labels in after.labels) == ["z-c", "z-d", "z-e"]
    assert after.version > before.version
    changed = [i for i in range(2) if after.labels[i] != before.labels[i]]
    assert changed
    assert all(after.epoch[i] > before.epoch.max() for i in changed)


def test_a_class_that_comes_back_finds_its_slot_and_epoch(inventory: Inventory) -> None:
    inventory.put(machine("m-1"))
    before = classes(inventory)
    inventory.remove("m-1")
    inventory.put(machine("m-2"))
    assert classes(inventory) is before


def test_epochs_go_on_growing_over_a_load(inventory: Inventory) -> None:
    inventory.load([machine("m-1")])
    before = classes(inventory)
    inventory.load([machine("m-1", zone="z-b")])
    assert classes(inventory).epoch[0] > before.epoch[0]
    assert classes(inventory).version > before.version


def test_the_table_stays_the_same_value_until_a_class_changes(inventory: Inventory) -> None:
    inventory.put(machine("m-1"))
    first = classes(inventory)
    inventory.put(machine("m-2"))
    inventory.set_state(np.array([0]), S.DELETING)
    assert classes(inventory) is first
    inventory.put(machine("m-3", zone="z-b"))
    assert classes(inventory) is not first


def test_a_resource_that_demand_brings_widens_the_table(inventory: Inventory) -> None:
    symbols = Symbols()
    inventory = Inventory(symbols)
    inventory.put(machine("m-1"))
    assert classes(inventory).whole.shape == (1, 2)
    symbols.resources.of("licence")
    table = classes(inventory)
    assert table.whole.tolist() == [[4, 16, 0]]
    assert table.milli.tolist() == [[0, 500, 0]]
    inventory.put(machine("m-2", resources={"licence": 1_000}))
    assert classes(inventory).whole.tolist() == [[4, 16, 0], [0, 0, 1]]


def test_more_than_64_bits_of_a_resource_is_read_as_very_much(inventory: Inventory) -> None:
    inventory.put(machine("m-1", resources={"cpu": 10**30}))
    assert classes(inventory).whole.tolist() == [[2**62]]
    found = inventory.get("m-1")
    assert found is not None
    assert found.resources == {"cpu": 10**30}


def test_racks_are_a_column_and_do_not_multiply_classes(inventory: Inventory) -> None:
    inventory.load([machine(f"m-{i}", labels={RACK: f"r-{i // 2}"}) for i in range(6)])
    inventory.put(machine("m-9", labels={}))
    columns = inventory.snapshot()
    assert len(columns.classes) == 1
    names = columns.topology_names[RACK]
    assert [names[i] for i in columns.topology[RACK][:6]] == [f"r-{i // 2}" for i in range(6)]
    assert columns.topology[RACK][6] == -1


def test_a_topology_label_that_no_machine_has_costs_no_column(inventory: Inventory) -> None:
    inventory.put(machine("m-1"))
    assert not inventory.snapshot().topology
    inventory.put(machine("m-2", labels={DEFAULT_TOPOLOGY_KEYS[-1]: "host-2"}))
    assert inventory.snapshot().topology[DEFAULT_TOPOLOGY_KEYS[-1]].tolist() == [-1, 0]


def hosts(count: int) -> list[Machine]:
    return [
        machine(f"m-{i:03}", labels={"pool": f"p{i % 2}", "host": f"h-{i}"}) for i in range(count)
    ]


def test_a_label_with_many_values_becomes_a_column_when_loaded(inventory: Inventory) -> None:
    inventory.load(hosts(257))
    columns = inventory.snapshot()
    assert len(columns.classes) == 2
    assert columns.topology["host"].tolist() == list(range(257))
    assert list(inventory) == hosts(257)


def test_a_label_with_few_values_stays_in_the_classes(inventory: Inventory) -> None:
    inventory.load(hosts(256))
    assert len(classes(inventory)) == 256
    assert not inventory.snapshot().topology


def test_a_label_that_outgrows_the_classes_is_taken_out_of_them(inventory: Inventory) -> None:
    for each in hosts(256):
        inventory.put(each)
    inventory.remove("m-007")
    before = inventory.snapshot()
    inventory.put(machine("m-256", labels={"pool": "p0", "host": "h-256"}))
    inventory.put(machine("m-257", labels={"pool": "p0", "host": "h-257"}))
    columns = inventory.snapshot()
    assert len(set(columns.cls[columns.state > 0].tolist())) == 2
    kept = [m for m in hosts(258) if m.id != "m-007"]
    assert sorted((m.id, m.labels["host"]) for m in inventory) == [
        (m.id, m.labels["host"]) for m in kept
    ]
    assert {m.labels["pool"] for m in inventory} == {"p0", "p1"}
    used = np.unique(columns.cls)
    assert (columns.classes.epoch[used] > before.classes.epoch.max()).all()
    assert before.classes.labels[5]["host"] == "h-5"


def test_freed_slots_are_used_again_after_a_label_was_taken_out() -> None:
    inventory = Inventory(Symbols(), most_label_values=3)
    inventory.load(hosts(3))
    inventory.put(machine("m-003", labels={"pool": "p1", "host": "h-3"}))
    slots = len(classes(inventory))
    inventory.put_many([machine(f"n-{i}", zone=f"z-{i}") for i in range(slots - 2)])
    assert len(classes(inventory)) == slots
    inventory.put(hosts(5)[4])
    columns = inventory.snapshot()
    assert columns.cls[inventory.row("m-004")] == columns.cls[inventory.row("m-000")]
    assert [inventory.get(f"m-{i:03}") for i in range(5)] == hosts(5)


def test_names_of_values_that_no_machine_has_any_more_are_dropped(inventory: Inventory) -> None:
    inventory.put_many([machine("m-1", labels={RACK: "kept"}), machine("m-2", labels={})])
    before = inventory.snapshot()
    for i in range(1200):
        inventory.put(machine("m-3", labels={RACK: f"r-{i}"}))
    columns = inventory.snapshot()
    names = columns.topology_names[RACK]
    assert names is not before.topology_names[RACK]
    assert sorted(names) == ["kept", "r-1199"]
    assert [names[i] if i >= 0 else None for i in columns.topology[RACK]] == [
        "kept",
        None,
        "r-1199",
    ]
    assert before.topology_names[RACK][int(before.topology[RACK][0])] == "kept"
