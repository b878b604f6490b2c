"""For which demand a node is there, and whether it is taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from bigfleet.cli.ctl.render.formats import plural
from bigfleet.cli.kubectl.answer import PluginAnswer, command, sentence, short
from bigfleet.cli.kubectl.kube_objects import Event, FullNode
from bigfleet.podcontroller.arrivals import INSTANCE_TYPE, ZONE, need_of
from bigfleet.podcontroller.ownership import MACHINE_ID
from bigfleet.podcontroller.pods import ArrivingNode, DemandPod, PodRequest

RECLAIMING_TAINT: Final = "bigfleet.lucy.sh/reclaiming"
RECLAIMING: Final = "Reclaiming"
LEAVING: Final = frozenset({"Draining", "Drained"})


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What was read about a node; one that has not joined yet has an ArrivingNode alone."""

    name: str
    node: FullNode | None = None
    upcoming: ArrivingNode | None = None
    pods: Sequence[DemandPod] = ()
    requests: Sequence[PodRequest] = ()
    """Those of the need that the machine was taken for."""
    events: Sequence[Event] = ()

    @property
    def machine(self) -> str:
        """The machine behind it; empty for a node that BigFleet did not bring."""
        labels = (self.node.metadata.labels or {}) if self.node is not None else {}
        upcoming = self.upcoming
        noted = (upcoming.metadata.annotations or {}) if upcoming is not None else {}
        fallback = upcoming.metadata.name.removeprefix("un-") if upcoming is not None else ""
        return labels.get(MACHINE_ID) or noted.get(MACHINE_ID) or fallback

    @property
    def is_reclaimed(self) -> bool:
        """Whether BigFleet takes it back at present."""
        taints = (self.node.spec.taints or ()) if self.node is not None else ()
        leaves = self.upcoming is not None and self.upcoming.status.phase in LEAVING
        return leaves or any(taint.key == RECLAIMING_TAINT for taint in taints)

    @property
    def is_ready(self) -> bool:
        """Whether its kubelet says so."""
        conditions = self.node.status.conditions if self.node is not None else ()
        return any(each.type == "Ready" and each.status == "True" for each in conditions)


def upcoming_of(
    name: str, node: FullNode | None, upcoming: Sequence[ArrivingNode]
) -> ArrivingNode | None:
    """The ArrivingNode of a node, by the node's name, its machine, or its own name."""
    machine = (node.metadata.labels or {}).get(MACHINE_ID, "") if node is not None else ""
    known = {name, f"un-{name}", f"un-{machine}"}
    for each in upcoming:
        noted = (each.metadata.annotations or {}).get(MACHINE_ID, "")
        if (each.status.node_ref or {}).get("name") == name or each.metadata.name in known:
            return each
        if noted and noted in (machine, name):
            return each
    return None


def explain_node(facts: NodeFacts) -> PluginAnswer:
    """The paragraph about a node."""
    if not facts.machine:
        text = (
            f"Node {facts.name} was not brought by BigFleet: it has no label {MACHINE_ID} and no "
            "ArrivingNode names it. BigFleet never takes it back."
        )
        return PluginAnswer(text, command("kubectl", "bigfleet", "upcoming"), _document(facts))
    parts = [_origin(facts)]
    follow_up = command(
        "kubectl", "get", "pods", "-A", "--field-selector", f"spec.nodeName={facts.name}"
    )
    if facts.node is None:
        parts.append(_on_its_way(facts))
        follow_up = command("kubectl", "bigfleet", "upcoming")
    else:
        ready = "It is Ready" if facts.is_ready else "It is not Ready"
        parts.append(f"{ready} and runs {plural(_running(facts), 'Pod')}.")
        parts.append(_reclaim(facts))
    if facts.upcoming is not None and facts.upcoming.status.last_error:
        parts.append(sentence(f"Its last error: {facts.upcoming.status.last_error}"))
    return PluginAnswer(" ".join(parts), follow_up, _document(facts))


def _origin(facts: NodeFacts) -> str:
    upcoming = facts.upcoming
    labels = (facts.node.metadata.labels or {}) if facts.node is not None else {}
    if upcoming is not None:
        labels = {**(upcoming.spec.labels or {}), **labels}
    kind = " in ".join(each for each in (labels.get(INSTANCE_TYPE), labels.get(ZONE)) if each)
    text = f"Node {facts.name} is machine {facts.machine}" + (f" ({kind})" if kind else "")
    need = need_of(upcoming) if upcoming is not None else None
    if need is None or not need.profile:
        return f"{text}, which BigFleet brought; for which need is not noted."
    text += f", which BigFleet brought for need {short(need.profile)}"
    if not facts.requests:
        return f"{text}. No CapacityRequest is in that need at present."
    highest = max(request.spec.priority for request in facts.requests)
    count = plural(len(facts.requests), "CapacityRequest")
    return f"{text}: {count} of priority {highest:,} at most."


def _on_its_way(facts: NodeFacts) -> str:
    phase = facts.upcoming.status.phase if facts.upcoming is not None else ""
    if phase in LEAVING:
        return f"It is {phase}: the node has left, and the machine goes back to the fleet."
    if phase == "Failed":
        return "It has failed and does not become a node; the shard takes another machine."
    return f"It has not joined the cluster yet ({phase or 'Provisioning'})."


def _reclaim(facts: NodeFacts) -> str:
    if not facts.is_reclaimed:
        return "BigFleet does not take it back at present."
    messages = [event.message for event in facts.events if event.reason == RECLAIMING]
    return messages[-1] if messages else "BigFleet takes this node back; no Event gives the reason."


def _running(facts: NodeFacts) -> int:
    return sum(pod.status.phase in ("Running", "Pending") for pod in facts.pods)


def _document(facts: NodeFacts) -> dict[str, object]:
    need = need_of(facts.upcoming) if facts.upcoming is not None else None
    return {
        "node": facts.name,
        "machine": facts.machine or None,
        "ready": facts.is_ready,
        "phase": None if facts.upcoming is None else facts.upcoming.status.phase,
        "need": msgspec.to_builtins(need),
        "requests": len(facts.requests),
        "pods": _running(facts),
        "taken_back": facts.is_reclaimed,
    }
