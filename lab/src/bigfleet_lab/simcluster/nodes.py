"""What the shard says of machines, as the nodes of a cluster.

The newest frame of a machine wins. A machine that is Configured has a node, Ready some time later
or never; one that is on its way has a place in the list and no node; one that left is gone. The
phases are those of UpcomingNode. When a node becomes Ready is told by the cluster, which has the
timers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from bigfleet.model import MachineState, QuantityError, Resources, parse_resources
from bigfleet_api.v1alpha1 import shard_pb2 as pb

S = MachineState


class Phase(StrEnum):
    """Where an upcoming node stands."""

    PROVISIONING = "Provisioning"
    LAUNCHED = "Launched"
    REGISTERED = "Registered"
    READY = "Ready"
    DRAINING = "Draining"
    FAILED = "Failed"


_PHASES: Final[Mapping[int, Phase]] = {
    S.IDLE: Phase.LAUNCHED,
    S.CONFIGURING: Phase.REGISTERED,
    S.CONFIGURED: Phase.READY,
    S.DRAINING: Phase.DRAINING,
    S.FAILED: Phase.FAILED,
}
_HAS_NODE = frozenset({Phase.READY, Phase.DRAINING})


def phase_after(before: Phase | None, state: int) -> Phase | None:
    """The phase a frame leads to; None when the machine has left the cluster."""
    if state == S.IDLE and before in _HAS_NODE:
        return None
    return _PHASES.get(state, Phase.PROVISIONING)


@dataclass(slots=True, eq=False)
class Node:
    """One machine of the cluster. Amounts are milli-units; `pods` counts by object."""

    machine_id: str
    phase: Phase
    provider_ref: str = ""
    node_name: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    room: dict[str, int] = field(default_factory=dict)
    """What pods may use."""
    ready_since_ns: int = 0
    """0 while it is not Ready."""
    cordoned: bool = False
    pods: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    session: int = 0
    """The session in which the shard last spoke of it."""
    last_error: str = ""

    @property
    def name(self) -> str:
        """What kubelet calls it: its host, else the machine."""
        return self.node_name or self.provider_ref or self.machine_id

    @property
    def provider_id(self) -> str:
        """The Node's own provider id, as clouds write them."""
        return f"sim:///{self.provider_ref}" if self.provider_ref else ""

    @property
    def exists(self) -> bool:
        """Whether there is a Node, Ready or not."""
        return self.phase in _HAS_NODE

    @property
    def ready(self) -> bool:
        """Whether pods can run here."""
        return bool(self.ready_since_ns) and self.exists

    @property
    def schedulable(self) -> bool:
        """Whether new pods are put here."""
        return self.ready and not self.cordoned and self.phase is Phase.READY


@dataclass(frozen=True, slots=True)
class FrameEffect:
    """What a frame changed. `joins` is a node whose readiness now has to be decided."""

    node: Node
    joins: bool = False
    left: bool = False


class Nodes:
    """The nodes of one cluster, by machine."""

    def __init__(self, overhead: Resources) -> None:
        self._overhead = overhead
        self._nodes: dict[str, Node] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def get(self, machine_id: str) -> Node | None:
        """The node of a machine."""
        return self._nodes.get(machine_id)

    def find(self, entry: str) -> Node | None:
        """A node by its name or, when none has it, by its machine."""
        for node in self._nodes.values():
            if node.exists and node.name == entry:
                return node
        named = self._nodes.get(entry)
        return named if named is not None and named.exists else None

    def hear(self, update: pb.NodeStateUpdate, session: int) -> FrameEffect:
        """A frame of the shard."""
        machine = update.machine_id
        node = self._nodes.get(machine)
        phase = (
            None if update.withdrawn else phase_after(node.phase if node else None, update.state)
        )
        if phase is None:
            self._nodes.pop(machine, None)
            return FrameEffect(node or Node(machine, Phase.PROVISIONING), left=True)
        joins = phase in _HAS_NODE and (node is None or not node.exists)
        if node is None:
            node = self._nodes[machine] = Node(machine, phase)
        node.phase, node.session, node.last_error = phase, session, update.last_error
        # What the shard does not say this time it has not taken back.
        node.node_name = update.node_name or node.node_name
        node.provider_ref = update.provider_id or node.provider_ref
        node.labels = dict(update.labels) or node.labels
        if update.HasField("resources"):
            node.room = self._room(update)
        if not node.exists:
            node.ready_since_ns, node.cordoned = 0, False
        return FrameEffect(node, joins=joins, left=not node.exists)

    def forget(self, machine_id: str) -> None:
        """It is gone."""
        self._nodes.pop(machine_id, None)

    def _room(self, update: pb.NodeStateUpdate) -> dict[str, int]:
        try:
            offered = parse_resources(update.resources.resources)
        except QuantityError:
            return {}
        return {
            name: max(0, amount - self._overhead.get(name, 0)) for name, amount in offered.items()
        }
