"""Machines as columns, and the map over all of them."""

import base64

import numpy as np
import pytest

from bigfleet_dashboard.state import fleetmap
from worlds_of_machines import (
    BARE_METAL,
    CONFIGURED,
    FAILED,
    IDLE,
    SPECULATIVE,
    SPOT,
    add_shard,
    fleet_of,
    machine,
)


def numbers(text: object, kind: type) -> list[int]:
    return [int(n) for n in np.frombuffer(base64.b64decode(str(text)), kind)]


def test_a_machine_keeps_its_place_when_its_state_changes() -> None:
    before = fleet_of([machine("m-1", IDLE), machine("m-2", IDLE, kind=BARE_METAL, price=0)])
    after = fleet_of(
        [machine("m-1", CONFIGURED, cluster="c"), machine("m-2", IDLE, kind=BARE_METAL, price=0)]
    )
    names = [[f.map.machine(i)["id"] for i in range(2)] for f in (before, after)]
    assert names == [["m-2", "m-1"]] * 2


def test_the_map_says_what_each_cell_is() -> None:
    fleet = fleet_of([machine("m-1", CONFIGURED, cluster="atlas"), machine("m-2", SPECULATIVE)])
    document = fleet.map.document()
    assert document["cell"] == "machine"
    assert numbers(document["state"], np.uint8) == [CONFIGURED, SPECULATIVE]
    clusters = document["clusters"]
    assert isinstance(clusters, list)
    assert [clusters[n] for n in numbers(document["cluster"], np.uint16)] == ["atlas", ""]


def test_very_many_machines_are_one_cell_per_class_state_and_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleetmap, "MOST_CELLS", 3)
    fleet = fleet_of([machine(f"m-{n}", IDLE) for n in range(5)] + [machine("m-9", FAILED)])
    document = fleet.map.document()
    assert (document["cell"], document["cells"], document["machines"]) == ("class", 2, 6)
    assert sorted(numbers(document["count"], np.uint32)) == [1, 5]


def test_machines_of_all_shards_are_one_list_and_each_can_be_found() -> None:
    fleet = fleet_of([machine("m-1"), machine("m-2", error="Boom: no")])
    add_shard(fleet, [machine("m-3", kind=SPOT, price=0.12)], shard="s-2")
    assert len(fleet.map) == 3
    found = fleet.map.machine(fleet.map.find("m-3"))
    assert (found["shard"], found["capacity_type"], found["price_per_hour"]) == (
        "s-2",
        "Spot",
        0.12,
    )
    assert fleet.map.machine(fleet.map.find("m-2"))["last_error"] == "Boom: no"
    assert fleet.map.find("unknown") == -1


def test_a_shard_that_is_removed_takes_its_machines_with_it() -> None:
    fleet = fleet_of([machine("m-1")])
    fleet.forget_shard("s-1")
    assert len(fleet.map) == 0
    assert fleet.map.by_state()["Idle"] == 0


def test_a_stamp_that_cannot_be_read_counts_as_none() -> None:
    fleet = fleet_of([machine("m-1", CONFIGURED, cluster="c", penalty="much")])
    assert int(fleet.map.bucket[0]) == 0


def test_what_no_machine_has_any_more_is_forgotten() -> None:
    fleet = fleet_of([machine("m-1", CONFIGURED, cluster="gone")], [], ["atlas"])
    for cent in range(50):
        add_shard(fleet, [machine("m-1", IDLE, price=cent / 100)], [], ["atlas"])
    document = fleet.map.document()
    assert document["classes"] == [["OnDemand", "a", "big", 0.49, "s-1"]]
    assert fleet.clusters() == ["atlas"]


def test_more_classes_than_two_bytes_number_are_not_confused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleetmap, "_MOST_SHORT", 2)
    fleet = fleet_of([machine(f"m-{n}", price=n) for n in range(3)])
    document = fleet.map.document()
    assert document["class_bits"] == 32
    assert numbers(document["class"], np.uint32) == [0, 1, 2]
