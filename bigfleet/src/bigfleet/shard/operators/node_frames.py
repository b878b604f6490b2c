"""What an operator sees of its nodes, from the wire; who they are is found out elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from bigfleet.shard.machines.node_reports import NodeFindings, NodeSeen
from bigfleet_api.v1alpha1 import shard_pb2 as pb


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
