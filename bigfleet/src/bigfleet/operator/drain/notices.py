"""What a node's owner reads before the node is taken back: an Event with the reason and the grace.

The reason is a closed list of the wire. It gives priorities and names no other cluster, because
readers of this cluster's Events may know nothing of others. An older shard gives no reason;
then the priority is all there is to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bigfleet.kube import EventRecorder, ObjectRef
from bigfleet.operator.nodes.objects import Node
from bigfleet_api.v1alpha1 import shard_pb2 as pb

RECLAIMING: Final = "Reclaiming"
CALLED_OFF: Final = "ReclaimCalledOff"
DEFAULT_GRACE_SECONDS: Final = 30.0
"""Of an instruction without one (wire.md 2.2)."""
_WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        pb.RECLAIM_REASON_NOT_NEEDED: "no demand of this cluster needs it",
        pb.RECLAIM_REASON_PREEMPTED: "demand of priority {priority} needs its machine",
        pb.RECLAIM_REASON_ENDING: "its provider has announced the end of its machine",
        pb.RECLAIM_REASON_ADMIN: "an administrator drains its machine",
        pb.RECLAIM_REASON_OTHER_SHARD: "demand elsewhere in the fleet needs its machine",
    }
)
_EXPECTED: Final = frozenset({pb.RECLAIM_REASON_NOT_NEEDED, pb.RECLAIM_REASON_ADMIN})


def grace_seconds(instruction: pb.ReclaimInstruction) -> float:
    """How long Pods have to leave."""
    grace = float(instruction.grace_period_seconds)
    return grace if grace > 0 else DEFAULT_GRACE_SECONDS


def reclaim_words(instruction: pb.ReclaimInstruction) -> str:
    """Why a node leaves, and how long its Pods have."""
    priority = instruction.preemptor_priority
    why = _WORDS.get(instruction.reason)
    if why is None:
        preempted = _WORDS[pb.RECLAIM_REASON_PREEMPTED]
        why = preempted if priority else "the fleet wants its machine back"
    return (
        f"BigFleet takes this node back: {why.format(priority=priority)}. "
        f"Its Pods have {_lasting(grace_seconds(instruction))} to leave; disruption budgets are "
        "kept until then."
    )


class ReclaimNotices:
    """Events on Nodes that are being emptied."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events

    def reclaiming(self, node: Node, instruction: pb.ReclaimInstruction) -> None:
        """A drain of this node begins."""
        tell = self._events.normal if instruction.reason in _EXPECTED else self._events.warn
        tell(_ref(node), RECLAIMING, reclaim_words(instruction))

    def called_off(self, node: Node) -> None:
        """The node stays after all."""
        words = "BigFleet keeps this node: its reclaim was called off."
        self._events.normal(_ref(node), CALLED_OFF, words)


def _ref(node: Node) -> ObjectRef:
    return ObjectRef("v1", "Node", node.metadata.name, "", node.metadata.uid)


def _lasting(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min" if minutes and not rest else f"{int(seconds)} s"
