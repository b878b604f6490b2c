"""How a node shows that it is being emptied: a taint, a cordon, and what a restart has to know.

The taint is the mark: a node without it is not ours to touch, so that an administrator's own cordon
stays. Who had cordoned the node before us is written down, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from bigfleet.operator.nodes.objects import Node, Taint

TAINT: Final = "bigfleet.lucy.sh/reclaiming"
INSTRUCTION: Final = "bigfleet.lucy.sh/reclaim-instruction"
DEADLINE: Final = "bigfleet.lucy.sh/reclaim-deadline"
CORDONED_BEFORE: Final = "bigfleet.lucy.sh/reclaim-cordoned-before"
Patch = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mark:
    """What is written on a node. `deadline` is Unix seconds; 0 where that cannot be read."""

    instruction_id: str
    deadline: float


def is_marked(node: Node) -> bool:
    """Whether we hold this node."""
    return any(taint.key == TAINT for taint in node.spec.taints)


def mark_of(node: Node) -> Mark | None:
    """What a node that we hold says."""
    if not is_marked(node):
        return None
    annotations = node.metadata.annotations
    try:
        deadline = datetime.fromisoformat(annotations.get(DEADLINE, "")).timestamp()
    except ValueError:
        deadline = 0.0
    return Mark(annotations.get(INSTRUCTION, ""), deadline)


def cordon(node: Node, mark: Mark) -> Patch | None:
    """What has to be written to hold a node; None where all of it is there."""
    if is_marked(node) and node.spec.unschedulable and mark_of(node) == mark:
        return None
    annotations = {INSTRUCTION: mark.instruction_id, DEADLINE: _moment(mark.deadline)}
    if not is_marked(node) and node.spec.unschedulable:
        annotations[CORDONED_BEFORE] = "true"
    taints = [_taint(one) for one in node.spec.taints if one.key != TAINT]
    taints.append({"key": TAINT, "effect": "NoSchedule"})
    return {
        "metadata": {"annotations": annotations},
        "spec": {"unschedulable": True, "taints": taints},
    }


def uncordon(node: Node) -> Patch | None:
    """What has to be written to let go of a node; None where we do not hold it."""
    if not is_marked(node):
        return None
    taints = [_taint(one) for one in node.spec.taints if one.key != TAINT]
    spec: Patch = {"taints": taints or None}
    if node.metadata.annotations.get(CORDONED_BEFORE) != "true":
        spec["unschedulable"] = None
    return {
        "metadata": {"annotations": dict.fromkeys((INSTRUCTION, DEADLINE, CORDONED_BEFORE))},
        "spec": spec,
    }


def _taint(taint: Taint) -> Patch:
    made: Patch = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        made["value"] = taint.value
    if taint.time_added:
        made["timeAdded"] = taint.time_added
    return made


def _moment(unix: float) -> str:
    return datetime.fromtimestamp(int(unix), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
