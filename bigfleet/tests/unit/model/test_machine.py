"""Machines: texts of their enums, stamps, what they offer and match."""

from dataclasses import replace
from typing import Any

import pytest

from bigfleet.model import (
    LABEL_CAPACITY_TYPE,
    LABEL_INSTANCE_TYPE,
    LABEL_ZONE,
    CapacityType,
    Machine,
    MachineError,
    MachineState,
    Need,
    PenaltyBucket,
    Profile,
    Stamp,
)
from plain_rules import matchable_labels


def test_states_have_the_numbers_of_the_wire_and_titles_for_people() -> None:
    assert [(state.value, state.title) for state in MachineState] == [
        (0, "Unspecified"),
        (1, "Speculative"),
        (2, "Creating"),
        (3, "Idle"),
        (4, "Configuring"),
        (5, "Configured"),
        (6, "Draining"),
        (7, "Deleting"),
        (8, "Failed"),
    ]


def test_capacity_types_have_a_label_and_a_name_in_files() -> None:
    assert [(kind.value, kind.label, kind.camel) for kind in CapacityType] == [
        (0, "", ""),
        (1, "bare-metal", "BareMetal"),
        (2, "reserved", "Reserved"),
        (3, "on-demand", "OnDemand"),
        (4, "spot", "Spot"),
    ]


@pytest.mark.parametrize("kind", CapacityType)
def test_capacity_types_are_read_from_their_text(kind: CapacityType) -> None:
    assert CapacityType.from_camel(kind.camel) is kind


def test_an_unknown_capacity_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(MachineError, match="use one of BareMetal, Reserved") as refusal:
        CapacityType.from_camel("spot")
    assert refusal.value.reason == "structural"


def test_a_machine_gives_its_allocatable_or_else_its_base_shape() -> None:
    base = Machine("m-1", MachineState.IDLE, resources={"cpu": 16000})
    assert base.effective_allocatable == {"cpu": 16000}
    real = Machine("m-1", MachineState.IDLE, resources={"cpu": 16000}, allocatable={"cpu": 15890})
    assert real.effective_allocatable == {"cpu": 15890}
    empty = Machine("m-1", MachineState.IDLE, resources={"cpu": 16000}, allocatable={})
    assert empty.effective_allocatable == {}


@pytest.mark.parametrize(
    ("price", "micro"),
    [(0.0, 0), (0.48, 480_000), (0.0000005, 0), (0.0000025, 2), (0.1, 100_000)],
)
def test_money_is_whole_micro_dollars(price: float, micro: int) -> None:
    assert Machine("m-1", MachineState.IDLE, price_per_hour=price).price_micro == micro


def test_the_three_keys_from_fields_overrule_labels() -> None:
    machine = Machine(
        "m-1",
        MachineState.IDLE,
        instance_type="gp.4xlarge",
        zone="z-a",
        capacity_type=CapacityType.ON_DEMAND,
        labels={LABEL_ZONE: "elsewhere", "pool": "p0"},
    )
    assert matchable_labels(machine) == {
        "pool": "p0",
        LABEL_INSTANCE_TYPE: "gp.4xlarge",
        LABEL_ZONE: "z-a",
        LABEL_CAPACITY_TYPE: "on-demand",
    }
    assert machine.labels[LABEL_ZONE] == "elsewhere"


def test_an_empty_field_adds_no_label_and_hides_none() -> None:
    machine = Machine("m-1", MachineState.IDLE, labels={LABEL_ZONE: "z-a"})
    assert matchable_labels(machine) == {LABEL_ZONE: "z-a"}


def test_a_stamp_says_all_that_must_outlive_the_need() -> None:
    profile = Profile.of(
        priority=100, interruption=PenaltyBucket.DOLLARS_2, reclamation=PenaltyBucket.PINNED
    )
    need = Need("c-000", profile, {"cpu": 4}, {"cpu": 1}, "gang", "large")
    stamp = Stamp.for_need(need, 42)
    assert stamp == Stamp(
        cluster="c-000",
        shape=profile.shape_fingerprint,
        group="gang",
        fingerprint=profile.fingerprint,
        priority=100,
        interruption=PenaltyBucket.DOLLARS_2,
        reclamation=PenaltyBucket.PINNED,
        sequence=42,
        size_class="large",
    )
    assert stamp.key == need.stamp_key


def test_a_machine_can_be_in_a_set() -> None:
    machine = Machine("m-1", MachineState.IDLE, labels={"pool": "p0"})
    assert machine in {machine}


def test_a_machine_but_for_some_values_is_as_if_they_were_replaced() -> None:
    machine = Machine("m-1", MachineState.IDLE, labels={"a": "b"}, pods=3)
    changes: dict[str, Any] = {"state": MachineState.CONFIGURING, "cluster": "c", "pods": None}
    assert machine.but(**changes) == replace(machine, **changes)
    assert machine.but() == machine
