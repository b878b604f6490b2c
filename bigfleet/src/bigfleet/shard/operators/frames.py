"""Frames that a shard sends to operators, made of machines; pure.

Which cluster receives a frame, and when, is decided in `node_updates` and `sessions`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Protocol

from bigfleet.model import (
    LABEL_INSTANCE_TYPE,
    LABEL_ZONE,
    Machine,
    MachineState,
    Resources,
    format_resources,
)
from bigfleet.shard.machines.node_observations import NodeFindings, NodeSeen
from bigfleet.wire.taints import taints_to_proto
from bigfleet_api.v1alpha1 import provider_pb2, shard_pb2
from bigfleet_api.v1alpha1 import shard_pb2 as pb

GONE: Final = "the machine is gone: its provider does not know it any more"

_SHAPES: Final = 4096


def node_key(machine_id: str) -> str:
    """What a newer frame about a machine replaces an older one by."""
    return f"node:{machine_id}"


def node_state(
    machine: Machine, cluster: str, node_name: str = "", *, withdrawn: bool = False
) -> shard_pb2.NodeStateUpdate:
    """How a machine stands, for the cluster it is, or was, meant for."""
    stamp = machine.stamp
    is_for_cluster = stamp is not None and stamp.cluster == cluster and not withdrawn
    return shard_pb2.NodeStateUpdate(
        supersedes_key=node_key(machine.id),
        machine_id=machine.id,
        cluster_id=cluster,
        state=provider_pb2.MachineState.ValueType(shown_state(machine)),
        node_name=node_name,
        provider_id=machine.host.ref if machine.host else "",
        last_error=machine.last_error if machine.state is MachineState.FAILED else "",
        labels=labels_of(machine),
        resources=resources_of(machine.effective_allocatable),
        taints=taints_to_proto(machine.taints),
        withdrawn=withdrawn,
        # A stamp may name another cluster, which this one must not learn of.
        profile_fingerprint=stamp.fingerprint if stamp and is_for_cluster else "",
        group=stamp.group if stamp and is_for_cluster else "",
    )


def shown_state(machine: Machine) -> MachineState:
    """The state a cluster is shown. One in its grace is on its way out, also for an operator that
    was away when it was told so: by this it knows that what it finds cordoned shall go."""
    if machine.leaving is not None and machine.state is MachineState.CONFIGURED:
        return MachineState.DRAINING
    return machine.state


def gone(machine: Machine, cluster: str) -> shard_pb2.NodeStateUpdate:
    """A machine that vanished, for the cluster it was meant for."""
    frame = node_state(machine, cluster, withdrawn=True)
    frame.state = provider_pb2.MACHINE_STATE_FAILED
    frame.last_error = GONE
    return frame


def not_yours(machine_id: str, cluster: str) -> shard_pb2.NodeStateUpdate:
    """A machine that is another's, for a cluster that believes it has it: nothing but that."""
    return shard_pb2.NodeStateUpdate(
        supersedes_key=node_key(machine_id),
        machine_id=machine_id,
        cluster_id=cluster,
        state=provider_pb2.MACHINE_STATE_IDLE,
        withdrawn=True,
    )


def bootstrap_machine(machine: Machine) -> shard_pb2.BootstrapMachine:
    """What a bootstrap template may want to know of the machine."""
    return shard_pb2.BootstrapMachine(
        machine_id=machine.id,
        instance_type=machine.instance_type,
        zone=machine.zone,
        capacity_type=provider_pb2.CapacityType.ValueType(machine.capacity_type),
        labels=labels_of(machine),
        resources=resources_of(machine.effective_allocatable),
        provider_id=machine.host.ref if machine.host else "",
    )


def labels_of(machine: Machine) -> dict[str, str]:
    """The provider's labels, and those of instance type and zone."""
    labels = dict(machine.labels)
    if machine.instance_type:
        labels[LABEL_INSTANCE_TYPE] = machine.instance_type
    if machine.zone:
        labels[LABEL_ZONE] = machine.zone
    return labels


def resources_of(amounts: Resources) -> provider_pb2.Resources:
    """Amounts as canonical quantities; to be read only, as equal ones share it."""
    return _printed(tuple(sorted(amounts.items())))


@lru_cache(_SHAPES)
def _printed(amounts: tuple[tuple[str, int], ...]) -> provider_pb2.Resources:
    return provider_pb2.Resources(resources=format_resources(dict(amounts)))


# What an operator sees of its nodes, from the wire; who they are is found out elsewhere.


class Nodes(Protocol):
    """Where observations go: what clusters say of the nodes that machines have become."""

    def node_name(self, machine_id: str) -> str:
        """What a machine's node is called; empty while no cluster reported it."""

    def set_nodes(self, cluster: str, nodes: Iterable[NodeSeen], *, full: bool) -> NodeFindings:
        """Take an observation; what it shows that is not as it should be."""


def nodes_seen(observations: pb.NodeObservations) -> list[NodeSeen]:
    """The nodes of a frame. Nothing negative is a number of pods."""
    return [
        NodeSeen(
            name=node.node_name,
            provider_id=node.provider_id,
            machine_id=node.machine_id,
            ready=node.ready,
            ready_since_ns=node.ready_since_unix_nanos,
            unschedulable=node.unschedulable,
            pods=max(0, node.pods),
            do_not_disrupt=node.do_not_disrupt,
        )
        for node in observations.nodes
    ]
