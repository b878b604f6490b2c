"""Machine records from the wire: what is taken, what is refused, what a stamp survives."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigfleet.model import CapacityType, HostRef, MachineError, MachineState, PenaltyBucket, Stamp
from bigfleet.wire.errors import UnknownStateError
from bigfleet.wire.machines import (
    KEY_FINGERPRINT,
    KEY_GROUP,
    KEY_INTERRUPTION,
    KEY_PRIORITY,
    KEY_RECLAMATION,
    machine_from_proto,
    metadata_from_stamp,
    stamp_from_metadata,
)
from bigfleet_api.v1alpha1 import provider_pb2 as pb


def record(**fields: object) -> pb.Machine:
    """An idle machine, but for these fields."""
    base: dict[str, object] = {
        "id": "m-1",
        "state": pb.MACHINE_STATE_IDLE,
        "host": pb.HostRef(provider="cloud", ref="i-1"),
        "instance_type": "small",
        "zone": "zone-a",
        "capacity_type": pb.CAPACITY_TYPE_SPOT,
        "price_per_hour": 0.12,
        "interruption_probability": 0.3,
        "resources": pb.Resources(resources={"cpu": "4", "memory": "16Gi"}),
        "labels": {"arch": "amd64"},
    }
    return pb.Machine(**{**base, **fields})  # type: ignore[arg-type]


def test_every_field_arrives() -> None:
    proto = record(allocatable=pb.Resources(resources={"cpu": "3900m"}), last_error="was ill")
    machine = machine_from_proto(proto, "cloud", "region-a")
    assert (machine.id, machine.state, machine.host) == (
        "m-1", MachineState.IDLE, HostRef("cloud", "i-1"),
    )  # fmt: skip
    assert (machine.provider, machine.region) == ("cloud", "region-a")
    assert (machine.instance_type, machine.zone) == ("small", "zone-a")
    assert machine.capacity_type is CapacityType.SPOT
    assert (machine.price_per_hour, machine.interruption_probability) == (0.12, 0.3)
    assert machine.resources == {"cpu": 4000, "memory": 16 * 2**30 * 1000}
    assert machine.allocatable == {"cpu": 3900}
    assert (machine.labels, machine.last_error) == ({"arch": "amd64"}, "was ill")
    assert machine.stamp is None


def test_absent_allocatable_is_the_base_shape() -> None:
    machine = machine_from_proto(record(), "cloud", "")
    assert machine.allocatable is None
    assert machine.effective_allocatable["cpu"] == 4000


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"price_per_hour": -0.01}, "price"),
        ({"price_per_hour": math.nan}, "price"),
        ({"interruption_probability": 1.1}, "interruption_probability"),
        ({"interruption_probability": math.nan}, "interruption_probability"),
        ({"host": pb.HostRef()}, "structural"),
        ({"id": ""}, "structural"),
        ({"state": pb.MACHINE_STATE_UNSPECIFIED}, "structural"),
        ({"state": pb.MACHINE_STATE_SPECULATIVE}, "structural"),
        ({"state": pb.MACHINE_STATE_CONFIGURED}, "structural"),
        ({"state": pb.MACHINE_STATE_CREATING, "cluster": "c"}, "structural"),
        ({"state": pb.MACHINE_STATE_FAILED}, "structural"),
        ({"capacity_type": 77}, "structural"),
        ({"resources": pb.Resources(resources={"cpu": "many"})}, "structural"),
        ({"allocatable": pb.Resources(resources={"cpu": "-1"})}, "structural"),
    ],
)
def test_a_record_that_breaks_a_rule_is_refused_with_its_reason(
    fields: dict[str, object], reason: str
) -> None:
    with pytest.raises(MachineError) as refused:
        machine_from_proto(record(**fields), "cloud", "")
    assert refused.value.reason == reason


def test_a_state_without_a_name_is_no_record_at_all() -> None:
    with pytest.raises(UnknownStateError, match="has state 9, which this release does not know"):
        machine_from_proto(record(state=9), "cloud", "")


def test_a_bound_machine_remembers_whom_it_was_taken_for() -> None:
    metadata = {
        KEY_PRIORITY: "-5", KEY_INTERRUPTION: "0.5", KEY_RECLAMATION: "inf",
        KEY_FINGERPRINT: "f00", KEY_GROUP: "gang\0", "another/key": "x",
    }  # fmt: skip
    bound = record(state=pb.MACHINE_STATE_CONFIGURED, cluster="c-1", shard_metadata=metadata)
    stamp = machine_from_proto(bound, "cloud", "").stamp
    assert stamp == Stamp(
        cluster="c-1", shape="", group="gang\0", fingerprint="f00", priority=-5,
        interruption=PenaltyBucket.HALF_DOLLAR, reclamation=PenaltyBucket.PINNED, sequence=0,
    )  # fmt: skip


def test_metadata_of_others_is_no_stamp() -> None:
    assert stamp_from_metadata("m", "c", {"another/key": "x"}) is None
    assert stamp_from_metadata("m", "", {KEY_PRIORITY: "1"}) is None


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (KEY_PRIORITY, "high"), (KEY_PRIORITY, "1.5"), (KEY_PRIORITY, "3000000000"),
        (KEY_PRIORITY, ""), (KEY_PRIORITY, "1_0"), (KEY_PRIORITY, "٣"),
        (KEY_INTERRUPTION, "nan"), (KEY_INTERRUPTION, "-1"), (KEY_RECLAMATION, "$5"),
        (KEY_RECLAMATION, ""),
    ],
)  # fmt: skip
def test_a_malformed_value_loses_that_key_only(key: str, text: str) -> None:
    good = {KEY_PRIORITY: "7", KEY_INTERRUPTION: "16", KEY_RECLAMATION: "0", KEY_GROUP: "g"}
    complaints: list[str] = []
    stamp = stamp_from_metadata("m-1", "c", {**good, key: text}, complaints.append)
    without = stamp_from_metadata("m-1", "c", {k: v for k, v in good.items() if k != key})
    assert stamp == without
    assert len(complaints) == 1
    assert key in complaints[0]
    assert repr(text) in complaints[0]


buckets = st.sampled_from(PenaltyBucket)


@given(st.integers(-(2**31), 2**31 - 1), buckets, buckets, st.text(), st.text())
def test_a_stamp_survives_the_way_to_the_provider_and_back(
    priority: int,
    interruption: PenaltyBucket,
    reclamation: PenaltyBucket,
    fingerprint: str,
    group: str,
) -> None:
    stamp = Stamp("c", "", group, fingerprint, priority, interruption, reclamation, 0)
    assert stamp_from_metadata("m", "c", metadata_from_stamp(stamp)) == stamp


def test_dollars_are_written_as_short_as_they_read_back() -> None:
    stamp = Stamp("c", "", "", "", 1, PenaltyBucket.DOLLARS_16, PenaltyBucket.PINNED, 0)
    assert metadata_from_stamp(stamp) == {
        KEY_PRIORITY: "1", KEY_INTERRUPTION: "16", KEY_RECLAMATION: "inf",
    }  # fmt: skip
