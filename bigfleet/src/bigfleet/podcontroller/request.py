"""Pod -> CapacityRequest. Pure: what is written, and what its owner should know.

The name follows from the Pod's own name and UID, so that a retry or a second replica can never
double the demand. What cannot be expressed is a note, which becomes an event on the Pod.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from bigfleet.kube.podspec import pod_resources
from bigfleet.model import (
    QuantityError,
    Requirement,
    Resources,
    SpreadMode,
    add,
    format_resources,
)
from bigfleet.podcontroller.penalties import Defaults, penalties_of
from bigfleet.podcontroller.pods import DemandPod, PodAffinityTerm, PodSelector
from bigfleet.podcontroller.requirements import as_documents, tolerations_of, wanted_nodes

API_VERSION: Final = "bigfleet.lucy.sh/v1alpha1"
KIND: Final = "CapacityRequest"
OWNED_BY_POD: Final = "bigfleet.lucy.sh/owned-by-pod"
CO_LOCATION_NAMESPACES: Final = "bigfleet.lucy.sh/co-location-namespaces"
"""Namespaces a Pod's affinity names, where that is not its own alone."""
LONGEST_NAME: Final = 253
_PREFIX: Final = "cr-pod-"
_HASH_DIGITS: Final = 10
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Translation:
    """A CapacityRequest, or None where the Pod can run nowhere; and what its owner should know."""

    request: Document | None
    notes: tuple[str, ...] = ()


def request_name(pod_name: str, uid: str, prefix: str = _PREFIX) -> str:
    """The one name of a Pod's CapacityRequest."""
    tail = "-" + hashlib.sha256(uid.encode()).hexdigest()[:_HASH_DIGITS]
    room = LONGEST_NAME - len(prefix) - len(tail)
    # A name that was cut must not end in what only stands between letters.
    return prefix + pod_name[:room].rstrip(".-") + tail


def translate(
    pod: DemandPod, defaults: Defaults, devices: Resources = MappingProxyType({})
) -> Translation:
    """The CapacityRequest of a Pod; `devices` are milli-units that its ResourceClaims add."""
    wanted = wanted_nodes(pod.spec)
    annotations = pod.metadata.annotations or {}
    penalties = penalties_of(annotations, pod.spec.priority_class_name, defaults)
    tolerations, unclear = tolerations_of(pod.spec.tolerations or ())
    notes = (*wanted.notes, *penalties.notes, *unclear)
    if wanted.requirements is None:
        return Translation(None, notes)
    try:
        resources = format_resources(add(pod_resources(pod.spec, pod.status), devices))
    except QuantityError as error:
        return Translation(None, (*notes, f"Its resources cannot be read: {error}."))
    spec: Document = {
        "requirements": [_requirement(one) for one in wanted.requirements],
        "resources": resources,
        "priority": pod.spec.priority or 0,
        # Also where there are none: that it is there says that they are known.
        "tolerations": as_documents(tolerations),
        **penalties.stated,
    }
    spread = _spread(pod)
    if spread:
        spec["topologySpread"] = spread
    metadata = _metadata(pod)
    near = _co_location(pod)
    if near is not None:
        spec["coLocation"], namespaces = near
        if namespaces:
            metadata["annotations"] = {CO_LOCATION_NAMESPACES: ",".join(namespaces)}
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}
    return Translation(document, notes)


def _metadata(pod: DemandPod) -> Document:
    meta = pod.metadata
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
    }
    return {
        "name": request_name(meta.name, meta.uid),
        "namespace": meta.namespace,
        "labels": {OWNED_BY_POD: meta.uid},
        "ownerReferences": [owner],
    }


def _requirement(requirement: Requirement) -> Document:
    made: Document = {"key": requirement.key, "operator": requirement.operator.value}
    if requirement.values:
        made["values"] = list(requirement.values)
    return made


def _spread(pod: DemandPod) -> list[Document]:
    hard = {
        (entry.topology_key, entry.max_skew)
        for entry in pod.spec.topology_spread_constraints or ()
        if entry.when_unsatisfiable != SpreadMode.SCHEDULE_ANYWAY and entry.topology_key
    }
    return [
        {
            "topologyKey": key,
            "maxSkew": max(1, skew),
            "whenUnsatisfiable": SpreadMode.DO_NOT_SCHEDULE.value,
        }
        for key, skew in sorted(hard)
    ]


def _co_location(pod: DemandPod) -> tuple[Mapping[str, Any], tuple[str, ...]] | None:
    """The first required Pod affinity, and the namespaces it names beyond the Pod's own."""
    affinity = pod.spec.affinity and pod.spec.affinity.pod_affinity
    terms = affinity and affinity.required_during_scheduling_ignored_during_execution
    if not terms:
        return None
    term = terms[0]
    namespaces = tuple(sorted(set(term.namespaces or ())))
    named = namespaces if namespaces != (pod.metadata.namespace,) else ()
    return {"topologyKey": term.topology_key, "labelSelector": _selector(term)}, named


def _selector(term: PodAffinityTerm) -> Document:
    selector = term.label_selector or PodSelector()
    made: Document = {}
    if selector.match_labels:
        made["matchLabels"] = dict(selector.match_labels)
    if selector.match_expressions:
        made["matchExpressions"] = [
            {"key": one.key, "operator": one.operator}
            | ({"values": list(one.values)} if one.values else {})
            for one in selector.match_expressions
        ]
    return made
