"""Machines as frames."""

from dataclasses import replace

import pytest

from bigfleet.model import LABEL_INSTANCE_TYPE, LABEL_ZONE, MachineState, Taint
from bigfleet.shard.operators.frames import bootstrap_machine, gone, node_state
from bigfleet_api.v1alpha1 import provider_pb2
from operators import machine, stamp


def test_an_update_has_all_a_node_is_known_by() -> None:
    frame = node_state(machine("m-1", cluster="c-1"), "c-1", "node-1")
    assert frame.supersedes_key == "node:m-1"
    assert (frame.machine_id, frame.cluster_id, frame.node_name) == ("m-1", "c-1", "node-1")
    assert frame.state == provider_pb2.MACHINE_STATE_CONFIGURED
    assert frame.provider_id == "i-m-1"
    assert dict(frame.labels) == {
        "pool": "a", LABEL_INSTANCE_TYPE: "standard-4", LABEL_ZONE: "zone-a",
    }  # fmt: skip
    assert dict(frame.resources.resources) == {"cpu": "4", "memory": "16Gi"}
    assert not frame.withdrawn


@pytest.mark.parametrize("state", [s for s in MachineState if s])
def test_states_have_the_numbers_of_the_wire(state: MachineState) -> None:
    frame = node_state(machine("m-1", state, last_error="broken"), "c-1")
    assert provider_pb2.MachineState.Name(frame.state) == f"MACHINE_STATE_{state.name}"
    assert frame.last_error == ("broken" if state is MachineState.FAILED else "")


def test_resources_are_what_the_machine_really_gives() -> None:
    less = replace(machine("m-1"), allocatable={"cpu": 3900, "memory": 15 * 2**30 * 1000})
    for resources in (node_state(less, "c-1").resources, bootstrap_machine(less).resources):
        assert dict(resources.resources) == {"cpu": "3900m", "memory": "15Gi"}


def test_an_update_says_for_which_need_of_the_cluster_the_machine_was_taken() -> None:
    taken_for = stamp("c-1", group="team/zone/g")
    creating = replace(machine("m-1", MachineState.CREATING), stamp=taken_for)
    frame = node_state(creating, "c-1")
    assert (frame.profile_fingerprint, frame.group) == (taken_for.fingerprint, "team/zone/g")


def test_an_update_names_no_need_of_another_cluster() -> None:
    preempted = machine("m-1", cluster="c-1", stamped="c-2")
    frame = node_state(preempted, "c-1")
    assert (frame.profile_fingerprint, frame.group) == ("", "")
    farewell = gone(machine("m-1", cluster="c-1", stamped="c-1"), "c-1")
    assert farewell.profile_fingerprint == ""


def test_a_machine_without_a_host_has_no_provider_id() -> None:
    assert node_state(machine("m-1", MachineState.CREATING), "c-1").provider_id == ""


def test_a_bootstrap_template_learns_of_the_machine() -> None:
    about = bootstrap_machine(machine("m-1", MachineState.IDLE))
    assert (about.machine_id, about.instance_type, about.zone) == ("m-1", "standard-4", "zone-a")
    assert about.capacity_type == provider_pb2.CAPACITY_TYPE_ON_DEMAND
    assert about.provider_id == "i-m-1"
    assert about.labels[LABEL_ZONE] == "zone-a"


def test_a_machine_that_vanished_is_failed_and_withdrawn() -> None:
    frame = gone(machine("m-1", cluster="c-1"), "c-1")
    assert frame.state == provider_pb2.MACHINE_STATE_FAILED
    assert frame.withdrawn
    assert "gone" in frame.last_error


def test_taints_of_the_record_are_those_of_the_node() -> None:
    taints = (Taint.of("gpu", "yes"), Taint.of("spot", "", "NoExecute"))
    tainted = replace(machine("m-1"), taints=taints)
    found = [(t.key, t.value, t.effect) for t in node_state(tainted, "c-1").taints]
    assert found == [("gpu", "yes", "NoSchedule"), ("spot", "", "NoExecute")]
