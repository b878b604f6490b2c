"""Pods, Nodes and CapacityRequests as an API server would show them, from a few words."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
Document = dict[str, Any]


def pod(
    name: str = "web",
    *,
    cpu: str = "500m",
    memory: str = "1Gi",
    node: str = "",
    uid: str = "",
    phase: str = "Pending",
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    owner: str = "",
    priority: int | None = None,
    namespace: str = "default",
    deleted: bool = False,
    **spec: Any,
) -> Document:
    """A Pod with one container."""
    metadata: Document = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}"}
    if annotations:
        metadata["annotations"] = annotations
    if labels:
        metadata["labels"] = labels
    if owner:
        metadata["ownerReferences"] = [
            {"kind": owner, "name": "owner", "uid": "uid-owner", "controller": True}
        ]
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    container = {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    written: Document = {"containers": [container], **spec}
    if node:
        written["nodeName"] = node
    if priority is not None:
        written["priority"] = priority
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": written,
        "status": {"phase": phase},
    }


def claim_spec(*requests: Document) -> Document:
    """The spec of a ResourceClaim with these requests."""
    named = [{"name": f"r-{number}", **one} for number, one in enumerate(requests)]
    return {"devices": {"requests": named}}


def exactly(name: str = "gpu.example.com", **more: Any) -> Document:
    """A request for devices of one class."""
    return {"exactly": {"deviceClassName": name, **more}}


def claim(name: str, *requests: Document, namespace: str = "default") -> Document:
    """A ResourceClaim."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": claim_spec(*requests),
    }


def claim_template(name: str, *requests: Document, namespace: str = "default") -> Document:
    """A ResourceClaimTemplate."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": claim_spec(*requests)},
    }


def uses(*, claim: str = "", template: str = "", name: str = "devices") -> list[Document]:
    """The resourceClaims of a Pod that has one."""
    source = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
    return [{"name": name, **source}]


def node(
    name: str,
    *,
    provider_id: str = "",
    ready: bool = True,
    labels: dict[str, str] | None = None,
    created: str = "2020-01-01T00:00:00Z",
    unschedulable: bool = False,
) -> Document:
    """A Node."""
    spec: Document = {}
    if provider_id:
        spec["providerID"] = provider_id
    if unschedulable:
        spec["unschedulable"] = True
    ready_condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": labels or {},
            "creationTimestamp": created,
        },
        "spec": spec,
        "status": {"conditions": [ready_condition]},
    }


def capacity_request(
    name: str = "cr-1",
    *,
    namespace: str = "default",
    uid: str = "",
    phase: str = "Pending",
    priority: int = 0,
    resources: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Document:
    """A CapacityRequest."""
    metadata: Document = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}"}
    if annotations:
        metadata["annotations"] = annotations
    asked = {"cpu": "1"} if resources is None else resources
    return {
        "apiVersion": "bigfleet.lucy.sh/v1alpha1",
        "kind": "CapacityRequest",
        "metadata": metadata,
        "spec": {"resources": asked, "priority": priority, **spec},
        "status": {"phase": phase},
    }


def read(kind: type[T], document: Document) -> T:
    """A document as the code under test reads it."""
    return msgspec.json.decode(msgspec.json.encode(document), type=kind)
