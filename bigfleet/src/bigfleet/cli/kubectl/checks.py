"""Whether the parts of BigFleet in one cluster work, and whether this user can see them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final

from bigfleet.cli.ctl.render.formats import lasting, plural
from bigfleet.cli.doctor.cluster import kinds, right, version
from bigfleet.cli.doctor.findings import Finding, fine, note, wrong
from bigfleet.cli.kubectl.cluster_reader import OPERATOR, POD_CONTROLLER, ClusterReader, operator_of
from bigfleet.cli.kubectl.context import PluginOptions
from bigfleet.cli.kubectl.shard_reader import place_of, verdicts
from bigfleet.cli.kubectl.why_pod import ACKNOWLEDGED
from bigfleet.kube import KubeError
from bigfleet.kube.fleet import GROUP
from bigfleet.podcontroller.pods import PodRequest

RIGHTS: Final = (
    ("", "pods", "get"),
    ("", "nodes", "list"),
    (GROUP, "capacityrequests", "list"),
    (GROUP, "upcomingnodes", "list"),
)
"""What the commands of this program read, as group, resource and verb."""
PATIENCE_S: Final = 60.0
"""An operator that works acknowledges a new request within two of its roll-ups."""


async def look(reader: ClusterReader, options: PluginOptions) -> AsyncIterator[Finding]:
    """Every check, one after the other."""
    try:
        yield version(json.loads(await reader.client.read_path("/version")))
    except (KubeError, ValueError, AttributeError) as error:
        yield wrong("API server", str(error), "check the kubeconfig, its context and its user")
        return
    installed = await kinds(reader.client)
    yield installed
    for group, resource, verb in RIGHTS:
        found = await right(reader.client, group, resource, verb)
        yield found if not found.remedy else note(found.about, found.text, _grant(resource, verb))
    if installed.remedy:
        return
    for about, labels in (("Operator", OPERATOR), ("Pod controller", POD_CONTROLLER)):
        yield deployed(about, await reader.deployments(labels), labels)
    yield acknowledged(await reader.every_request(), reader.now_unix_s)
    yield await _shard(reader, options)


def deployed(about: str, found: list[dict[str, Any]], labels: str) -> Finding:
    """Whether a part runs, as far as its chart's labels tell."""
    if not found:
        text = f"no Deployment with the label {labels} is visible to this user"
        return note(about, text, "install its chart; one that runs elsewhere is not seen here")
    each = operator_of(found[0])
    text = f"{each.namespace}/{each.name}: {each.ready} of {plural(each.replicas, 'replica')} ready"
    if each.ready:
        return fine(about, text)
    return wrong(about, text, f"kubectl describe deployment {each.name} -n {each.namespace}")


def acknowledged(requests: list[PodRequest], now_unix_s: float) -> Finding:
    """Whether demand reaches a shard."""
    waiting = [one for one in requests if one.status.phase != ACKNOWLEDGED]
    ages = [now_unix_s - created for one in waiting if (created := _created(one)) is not None]
    oldest = max(ages, default=0.0)
    text = f"{plural(len(requests), 'CapacityRequest')}, {len(waiting):,} not acknowledged"
    if oldest <= PATIENCE_S:
        return fine("Demand", text)
    text += f", the oldest for {lasting(oldest)}"
    return wrong("Demand", text, "the operator's log says whether it reaches its shard")


async def _shard(reader: ClusterReader, options: PluginOptions) -> Finding:
    place = place_of(options, await reader.operator())
    found = await verdicts(options, place)
    if found.problem:
        remedy = "add --shard-addr, or run `kubectl port-forward` to the shard's Service first"
        return note("Shard", found.problem, remedy)
    lacking = sum(not view.satisfied for view in found.views)
    count = plural(len(found.views), "need")
    return fine("Shard", f"answers: {count} of cluster {place.cluster_id}, {lacking:,} unmet")


def _grant(resource: str, verb: str) -> str:
    return f"without it answers are shorter; let this user {verb} {resource}"


def _created(request: PodRequest) -> float | None:
    try:
        return datetime.fromisoformat(request.metadata.creation_timestamp).timestamp()
    except ValueError:
        return None
