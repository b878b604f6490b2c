"""An API server: whether it is new enough, knows our kinds, and lets an operator do its work."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any, Final

from bigfleet.cli.doctor.findings import Finding, fine, wrong
from bigfleet.kube import KubeClient, KubeError, Resource, load
from bigfleet.kube.fleet import GROUP, VERSION

OLDEST: Final = 27
"""Minor version."""
KINDS: Final = ("capacityrequests", "upcomingnodes", "availablecapacities")
RIGHTS: Final = (
    (GROUP, "capacityrequests", "list"),
    (GROUP, "capacityrequests/status", "patch"),
    (GROUP, "upcomingnodes", "create"),
    (GROUP, "upcomingnodes/status", "patch"),
    ("", "nodes", "patch"),
    ("", "pods", "list"),
    ("", "pods/eviction", "create"),
)
"""What an operator cannot do without, as group, resource and verb."""
REVIEWS: Final[Resource[dict[str, Any]]] = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", dict,
    namespaced=False,
)  # fmt: skip


async def look_at_cluster(kubeconfig: str, context: str) -> AsyncIterator[Finding]:
    """The cluster a kubeconfig names, seen with its user's rights."""
    try:
        config = load(kubeconfig or None, context or None)
    except KubeError as error:
        yield wrong("Cluster", str(error), "name a file with --kubeconfig")
        return
    async with KubeClient.connect(config, user_agent="bigfleet-doctor") as client:
        try:
            yield version(json.loads(await client.read_path("/version")))
        except (KubeError, ValueError, AttributeError) as error:
            yield wrong("API server", str(error), "check its address, and the rights of this user")
            return
        yield await kinds(client)
        for group, resource, verb in RIGHTS:
            yield await right(client, group, resource, verb)


def version(reply: dict[str, Any]) -> Finding:
    """Whether the API server is new enough."""
    minor = re.match(r"\d+", str(reply.get("minor", "")))
    release = f"Kubernetes {reply.get('gitVersion', 'of unknown version')}"
    if minor is None or (str(reply.get("major")) == "1" and int(minor[0]) < OLDEST):
        return wrong("API server", release, f"use Kubernetes 1.{OLDEST} or newer")
    return fine("API server", release)


async def kinds(client: KubeClient) -> Finding:
    """Whether the custom resources are installed."""
    remedy = "install the CRDs: kubectl apply -f api/crd, or the operator's chart"
    try:
        reply = json.loads(await client.read_path(f"/apis/{GROUP}/{VERSION}"))
        there = {str(each.get("name")) for each in reply.get("resources", ())}
    except (KubeError, ValueError, AttributeError) as error:
        return wrong("Custom resources", f"{GROUP}/{VERSION}: {error}", remedy)
    missing = [kind for kind in KINDS if kind not in there]
    if missing:
        return wrong("Custom resources", f"{', '.join(missing)} missing", remedy)
    return fine("Custom resources", f"{', '.join(KINDS)} of {GROUP}/{VERSION}")


async def right(client: KubeClient, group: str, resource: str, verb: str) -> Finding:
    """Whether this user may do one thing."""
    plural, _, part = resource.partition("/")
    access = {"group": group, "resource": plural, "subresource": part, "verb": verb}
    body = {
        "apiVersion": REVIEWS.api_version,
        "kind": REVIEWS.kind,
        "spec": {"resourceAttributes": {key: text for key, text in access.items() if text}},
    }
    what = f"{verb} {resource}"
    try:
        answer = await client.create(REVIEWS, body)
    except KubeError as error:
        return wrong("Rights", f"{what}: {error}", "let this user create SelfSubjectAccessReviews")
    if answer.get("status", {}).get("allowed"):
        return fine("Rights", f"may {what}")
    return wrong("Rights", f"may not {what}", "bind the operator chart's ClusterRole to this user")
