"""Why a Pod waits, or which node serves it: from the Pod over request and need to machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from bigfleet.cli.ctl.render.formats import amount_words, plural
from bigfleet.cli.ctl.shards.need_explanation import NeedOfShard
from bigfleet.cli.kubectl.answer import PluginAnswer, command, sentence, short
from bigfleet.cli.kubectl.cluster_reader import OPERATOR, POD_CONTROLLER, OperatorDeployment
from bigfleet.cli.kubectl.shard_reader import ShardPlace, ShardVerdicts
from bigfleet.kube.fleet import PROFILE_LABEL
from bigfleet.model import parse_resources, size_class
from bigfleet.model.errors import ModelError
from bigfleet.podcontroller.arrivals import Arrivals, need_of
from bigfleet.podcontroller.demand import PodRole, verdict
from bigfleet.podcontroller.notices import arrival_words, unmet_condition
from bigfleet.podcontroller.pods import ArrivingNode, DemandPod, PodRequest, RequestNeed

ACKNOWLEDGED: Final = "Acknowledged"
REMEDIES_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What was read about a Pod."""

    pod: DemandPod
    request: PodRequest | None = None
    upcoming: Sequence[ArrivingNode] = ()
    """Machines of the need, whatever their phase."""
    arrivals: Arrivals | None = None
    operator: OperatorDeployment | None = None
    place: ShardPlace = field(default_factory=ShardPlace)
    shard: ShardVerdicts = field(default_factory=ShardVerdicts)

    @property
    def name(self) -> str:
        """Of the Pod."""
        return self.pod.metadata.name

    @property
    def namespace(self) -> str:
        """Of the Pod."""
        return self.pod.metadata.namespace


def size_of(request: PodRequest) -> str:
    """The size class of a request: requests of one profile but of other sizes are other needs."""
    amounts = request.spec.resources or {}
    try:
        parsed = parse_resources({name: str(each) for name, each in amounts.items()})
    except ModelError:
        # The operator leaves such a request out of its demand, so no shard knows it.
        return ""
    return size_class({name: milli for name, milli in parsed.items() if milli})


def explain_pod(facts: PodFacts, now_unix_s: float) -> PluginAnswer:
    """The paragraph about a Pod."""
    text, follow_up = _explained(facts, now_unix_s)
    return PluginAnswer(text, follow_up, _document(facts))


def _explained(facts: PodFacts, now_unix_s: float) -> tuple[str, str]:
    pod, request = facts.pod, facts.request
    what = f"Pod {facts.name} in namespace {facts.namespace}"
    role = verdict(pod, on_foreign_node=False)
    if role is not PodRole.DEMAND and not pod.spec.node_name:
        text = f"{what} asks BigFleet for nothing, because {role.value}."
        return text, command("kubectl", "describe", "pod", facts.name, "-n", facts.namespace)
    if pod.spec.node_name:
        return _placed(facts, what)
    if request is None:
        return _without_request(what)
    asks = _asks(request)
    head = f"{what} waits for a node and asks for {asks} (CapacityRequest {request.metadata.name}, "
    if request.status.phase != ACKNOWLEDGED or request.status.need is None:
        return _pending(facts, f"{head}priority {request.spec.priority:,}).")
    need = request.status.need
    head += f"priority {request.spec.priority:,}, need {short(need.profile)})."
    return _of_need(facts, head, need, now_unix_s)


def _placed(facts: PodFacts, what: str) -> tuple[str, str]:
    pod, node = facts.pod, facts.pod.spec.node_name
    verb = "runs on" if pod.status.phase == "Running" else f"is {pod.status.phase} on"
    text = f"{what} {verb} node {node}."
    if facts.request is None:
        text += " It has no CapacityRequest: BigFleet counts no demand for it."
    else:
        text += f" Its CapacityRequest {facts.request.metadata.name} keeps capacity for it."
    return text, command("kubectl", "bigfleet", "why", f"node/{node}")


def _without_request(what: str) -> tuple[str, str]:
    text = (
        f"{what} waits for a node and has no CapacityRequest, so BigFleet does not know of it. The "
        "pod controller creates one within seconds; it does not run, may not see this namespace, "
        "or could not understand the Pod or its claims (then an Event on the Pod says why)."
    )
    return text, command("kubectl", "get", "deployments", "-A", "-l", POD_CONTROLLER)


def _pending(facts: PodFacts, head: str) -> tuple[str, str]:
    text = (
        f"{head} No shard has acknowledged this request yet: the operator sends demand every 10 s "
        "and again when it reaches its shard."
    )
    operator = facts.operator
    if operator is not None and not operator.ready:
        text += f" No replica of the operator {operator.name} is ready."
    if operator is not None:
        where = f"deployment/{operator.name}"
        return text, command("kubectl", "logs", "-n", operator.namespace, where, "--tail=20")
    return text, command("kubectl", "get", "deployments", "-A", "-l", OPERATOR)


def _of_need(facts: PodFacts, head: str, need: RequestNeed, now_unix_s: float) -> tuple[str, str]:
    parts, follow_up = [head], ""
    if facts.arrivals is not None:
        parts.append(arrival_words(facts.arrivals, now_unix_s))
        label = f"{PROFILE_LABEL}={need.profile}"
        follow_up = command("kubectl", "get", "upcomingnodes", "-l", label, "--watch")
    view = next((each for each in facts.shard.views if not each.satisfied), None)
    condition = unmet_condition(facts.request) if facts.request is not None else None
    if view is not None:
        seen = NeedOfShard("", view, round(now_unix_s * 1e9))
        parts.append(_unmet_words(seen))
        follow_up = follow_up or command(*_inspect(facts.place, need))
    elif condition is not None:
        parts.append(f"It is unmet: {(condition.message or condition.reason).rstrip('.')}.")
        follow_up = follow_up or _follow_unmet(facts, need)
        if facts.shard.problem:
            parts.append(sentence(facts.shard.problem))
    if not follow_up:
        parts.append(_met_words(facts))
        pod = facts.pod.metadata
        follow_up = command("kubectl", "describe", "pod", pod.name, "-n", pod.namespace)
    return " ".join(parts), follow_up


def _unmet_words(seen: NeedOfShard) -> str:
    view = seen.view
    lacks = amount_words(view.residual_deficit.resources)
    text = f"Its need lacks {lacks}: {seen.why().rstrip('.')}."
    if seen.explanation is not None and seen.explanation.why:
        text += f" Blocked by: {seen.explanation.why.rstrip('.')}."
    remedies = seen.explanation.remedies if seen.explanation is not None else ()
    if remedies:
        tried = [f"{each.change} ({each.effect})" for each in remedies[:REMEDIES_SHOWN]]
        text += f" The shard tried what would help: {'; '.join(tried)}."
    return text


def _met_words(facts: PodFacts) -> str:
    ready = sum(machine.status.phase == "Ready" for machine in facts.upcoming)
    if ready:
        text = f"BigFleet has brought {plural(ready, 'node')} for its need, and none is missing."
    else:
        text = "The shard counts its need as met with nodes that are there already."
    waits = next((c for c in facts.pod.status.conditions if c.type == "PodScheduled"), None)
    if waits is not None and waits.status == "False":
        text += " The scheduler has not placed the Pod; its Events say what it waits for."
    return text


def _follow_unmet(facts: PodFacts, need: RequestNeed) -> str:
    if facts.place.is_known:
        return command(*_inspect(facts.place, need))
    request = facts.request
    name = request.metadata.name if request is not None else ""
    return command("kubectl", "describe", "capacityrequest", name, "-n", facts.namespace)


def _inspect(place: ShardPlace, need: RequestNeed) -> tuple[str, ...]:
    words = ["inspect-needs", "--unmet", f"--cluster={place.cluster_id}"]
    words.append(f"--profile={need.profile}")
    if need.group:
        words.append(f"--group={need.group}")
    return place.ctl(*words)


def _asks(request: PodRequest) -> str:
    resources = {
        name: str(amount)
        for name, amount in (request.spec.resources or {}).items()
        if name != "pods"
    }
    return amount_words(resources)


def _document(facts: PodFacts) -> dict[str, object]:
    request = facts.request
    condition = unmet_condition(request) if request is not None else None
    need = request.status.need if request is not None else None
    phases = Counter(machine.status.phase or "Provisioning" for machine in facts.upcoming)
    return {
        "pod": facts.name,
        "namespace": facts.namespace,
        "node": facts.pod.spec.node_name or None,
        "request": None if request is None else request.metadata.name,
        "phase": None if request is None else request.status.phase or None,
        "need": msgspec.to_builtins(need),
        "unmet": msgspec.to_builtins(condition),
        "machines": dict(sorted(phases.items())),
        "shard_asked": bool(facts.shard.views),
    }


def machines_of(need: RequestNeed | None, upcoming: Sequence[ArrivingNode]) -> list[ArrivingNode]:
    """The machines that were taken for a need."""
    return [] if need is None else [machine for machine in upcoming if need_of(machine) == need]
