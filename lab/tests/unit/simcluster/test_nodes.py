"""What the shard says of machines, as nodes."""

import pytest

from bigfleet.model import MachineState
from bigfleet_api.v1alpha1 import provider_pb2 as provider
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_lab.simcluster.nodes import Nodes, Phase, phase_after

S = MachineState


def update(state: int, machine: str = "m-1", **more: object) -> pb.NodeStateUpdate:
    said = provider.MachineState.ValueType(state)
    return pb.NodeStateUpdate(machine_id=machine, state=said, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "state", "after"),
    [
        (None, S.SPECULATIVE, Phase.PROVISIONING),
        (None, S.CREATING, Phase.PROVISIONING),
        (None, S.DELETING, Phase.PROVISIONING),
        (None, 77, Phase.PROVISIONING),
        (None, S.IDLE, Phase.LAUNCHED),
        (Phase.REGISTERED, S.IDLE, Phase.LAUNCHED),
        (Phase.LAUNCHED, S.CONFIGURING, Phase.REGISTERED),
        (Phase.REGISTERED, S.CONFIGURED, Phase.READY),
        (Phase.READY, S.DRAINING, Phase.DRAINING),
        (Phase.READY, S.FAILED, Phase.FAILED),
        (Phase.DRAINING, S.IDLE, None),
        (Phase.READY, S.IDLE, None),
    ],
)
def test_phases_follow_states(before: Phase | None, state: int, after: Phase | None) -> None:
    assert phase_after(before, state) is after


def test_a_configured_machine_joins_once() -> None:
    nodes = Nodes({})
    assert not nodes.hear(update(S.CONFIGURING), 1).joins
    assert nodes.hear(update(S.CONFIGURED), 1).joins
    assert not nodes.hear(update(S.CONFIGURED), 1).joins
    assert nodes.hear(update(S.IDLE), 1).left
    assert len(nodes) == 0


def test_what_is_not_said_is_not_taken_back() -> None:
    nodes = Nodes({"cpu": 500})
    offered = provider.Resources(resources={"cpu": "4"})
    nodes.hear(update(S.CONFIGURED, provider_id="h-1", labels={"a": "b"}, resources=offered), 1)
    node = nodes.hear(update(S.DRAINING), 2).node
    assert (node.provider_ref, node.labels, node.room) == ("h-1", {"a": "b"}, {"cpu": 3_500})
    assert node.session == 2
    assert not node.schedulable


def test_a_withdrawn_machine_is_gone_whatever_its_state() -> None:
    nodes = Nodes({})
    nodes.hear(update(S.CREATING), 1)
    assert nodes.hear(update(S.CREATING, withdrawn=True), 1).left
    assert len(nodes) == 0
    assert nodes.hear(update(S.IDLE, machine="never-heard-of", withdrawn=True), 1).left


def test_a_node_is_found_by_name_before_machine() -> None:
    nodes = Nodes({})
    nodes.hear(update(S.CONFIGURED, machine="x", provider_id="h-1"), 1)
    nodes.hear(update(S.CONFIGURED, machine="y", provider_id="x"), 1)
    nodes.hear(update(S.CREATING, machine="z"), 1)
    found = [nodes.find(entry) for entry in ("x", "h-1", "y", "z", "unknown")]
    assert [node.machine_id if node else None for node in found] == ["y", "x", "y", None, None]


def test_resources_that_cannot_be_read_are_no_room() -> None:
    nodes = Nodes({})
    bad = provider.Resources(resources={"cpu": "four"})
    assert nodes.hear(update(S.CONFIGURED, resources=bad), 1).node.room == {}
