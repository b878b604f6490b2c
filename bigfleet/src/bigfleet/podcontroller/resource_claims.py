"""Devices of Pods: what their ResourceClaims add to a request, and which Pod carries a shared one.

Dynamic Resource Allocation names devices by DeviceClass; machines of the fleet have resources such
as nvidia.com/gpu. A setting maps one to the other. What is not a number of a resource is refused
with an UnsupportedClaimError that says what to change: demand for CPU and memory alone would bring
machines on which the Pod cannot run. Selectors, constraints and configs of a claim are not read.

A Pod names a claim, or a template of which it gets a claim of its own. A claim that Pods share is
counted once, for the first of them by creation and name that asks for capacity and whose claims can
all be counted; when that Pod goes, the next one carries it. Every Pod for which something may have
changed is handed to `on_change`. The watches are in `server`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeVar

from bigfleet.kube import Change, KubeClient, NotFoundError
from bigfleet.kube.objects import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from bigfleet.model import Resources, add
from bigfleet.podcontroller.demand import PodRole, verdict
from bigfleet.podcontroller.errors import UnsupportedClaimError
from bigfleet.podcontroller.pods import (
    ClaimSpec,
    DemandPod,
    DeviceCount,
    DeviceRequest,
    PodResourceClaim,
    ResourceClaim,
    ResourceClaimTemplate,
)

CLAIM: Final = "ResourceClaim"
TEMPLATE: Final = "ResourceClaimTemplate"
MOST_DEVICES: Final = 32
"""Kubernetes allocates no claim with more."""
_MILLI: Final = 1000
_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN: Final = rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*"
_CLASS: Final = re.compile(_DOMAIN)
_RESOURCE: Final = re.compile(
    rf"({_LABEL}(\.{_LABEL})*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{{0,61}}[A-Za-z0-9])?"
)
_LONGEST_RESOURCE: Final = 253 + 1 + 63
_ADVICE: Final = "No capacity is requested for this Pod"
DeviceClasses = Mapping[str, str]
"""Resource names by DeviceClass."""
PodKey = tuple[str, str]
T = TypeVar("T")


class ClaimRef(NamedTuple):
    """A claim or a template, by name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class MissingClaimError(UnsupportedClaimError):
    """What a Pod names is not there; one of `refs` would do."""

    def __init__(self, words: str, refs: tuple[ClaimRef, ...]) -> None:
        super().__init__(words)
        self.refs = refs


class ClaimBook:
    """Claims, templates, and the Pods that name them."""

    def __init__(self, classes: DeviceClasses) -> None:
        self._classes = classes
        self.on_change: Callable[[PodKey], None] = lambda _key: None
        self.asks: Callable[[DemandPod], bool] = lambda _pod: True
        """Whether a Pod would get a request, were it not for its claims."""
        self.unavailable = ""
        """Why claims cannot be read, for people; empty when they can."""
        self._specs: dict[ClaimRef, ClaimSpec] = {}
        self._pods: dict[PodKey, DemandPod] = {}
        """Pods with claims."""
        self._users: dict[ClaimRef, set[PodKey]] = {}
        self._sharers: dict[ClaimRef, list[tuple[str, str]]] = {}
        """Creation and name of Pods that name a claim itself, in order."""
        self._carriers: dict[ClaimRef, PodKey] = {}

    # -- what watches bring ----------------------------------------------------------------------

    def claim_seen(self, change: Change[ResourceClaim]) -> None:
        """A ResourceClaim came, changed or went."""
        found = change.new or change.old
        if found is not None:
            ref = ClaimRef(CLAIM, found.metadata.namespace, found.metadata.name)
            self._put(ref, None if change.new is None else change.new.spec)

    def template_seen(self, change: Change[ResourceClaimTemplate]) -> None:
        """A ResourceClaimTemplate came, changed or went."""
        found = change.new or change.old
        if found is not None:
            ref = ClaimRef(TEMPLATE, found.metadata.namespace, found.metadata.name)
            self._put(ref, None if change.new is None else change.new.spec.spec)

    def set_unavailable(self, why: str) -> None:
        """Claims cannot be read, or can again where `why` is empty."""
        if why != self.unavailable:
            self.unavailable = why
            for key in self._pods:
                self.on_change(key)

    def pod_seen(self, key: PodKey, pod: DemandPod | None) -> None:
        """A Pod came, changed or went."""
        before = self._pods.pop(key, None)
        if before is None and (pod is None or not pod.spec.resource_claims):
            return
        touched: set[ClaimRef] = set()
        if before is not None:
            self._unlink(before)
            touched.update(_shared(before))
        if pod is not None and pod.spec.resource_claims:
            self._pods[key] = pod
            self._link(pod)
            touched.update(_shared(pod))
        for ref in sorted(touched):
            self._choose(ref)

    # -- what is asked ---------------------------------------------------------------------------

    def follow(self, pod: DemandPod) -> None:
        """Something about a Pod may have changed: choose again who carries what it shares."""
        for ref in sorted(set(_shared(pod))):
            self._choose(ref)

    def devices_of(self, pod: DemandPod) -> Resources:
        """Milli-units that a Pod's claims add to its request, or an UnsupportedClaimError."""
        total: Resources = {}
        for ref, amounts in self._counted(pod):
            if ref is None or self._carriers.get(ref) == pod.key:
                total = add(total, amounts)
        return total

    def _counted(self, pod: DemandPod) -> Iterator[tuple[ClaimRef | None, Resources]]:
        """The amounts of each claim, with the claim where Pods may share it."""
        shared: set[ClaimRef] = set()
        for entry in pod.spec.resource_claims or ():
            refs = _refs(pod, entry)
            found = next((ref for ref in refs if ref in self._specs), None)
            if self.unavailable or found is None:
                raise self._missing(entry, refs)
            if found in shared:
                continue
            amounts = count_devices(self._specs[found], self._classes, str(found))
            if entry.resource_claim_name:
                shared.add(found)
            yield (found if entry.resource_claim_name else None), amounts

    def _missing(self, entry: PodResourceClaim, refs: tuple[ClaimRef, ...]) -> Exception:
        what = str(refs[0]) if refs else f"the source of claim {entry.name}"
        why, remedy = "is not there", "It is requested once that exists."
        if self.unavailable:
            why, refs, remedy = f"cannot be read: {self.unavailable}", (), "It is tried again."
        elif not refs:
            why, remedy = "is not one that this release knows", "Name a claim or a template."
        return MissingClaimError(
            f"No capacity is requested for this Pod: {what} {why}. {remedy}", refs
        )

    # -- who carries what ------------------------------------------------------------------------

    def _choose(self, ref: ClaimRef) -> None:
        before, now = self._carriers.get(ref), self._carrier(ref)
        if now == before:
            return
        if now is None:
            del self._carriers[ref]
        else:
            self._carriers[ref] = now
        # The new one first: a claim that counts twice for a moment costs less than one that
        # counts for no Pod.
        for key in (now, before):
            if key is not None:
                self.on_change(key)

    def _carrier(self, ref: ClaimRef) -> PodKey | None:
        if ref not in self._specs:
            return None
        pods = (self._pods[ref.namespace, name] for _, name in self._sharers.get(ref, ()))
        return next((pod.key for pod in pods if self.asks(pod) and self._is_counted(pod)), None)

    def _is_counted(self, pod: DemandPod) -> bool:
        try:
            return sum(1 for _ in self._counted(pod)) > 0
        except UnsupportedClaimError:
            return False

    def _put(self, ref: ClaimRef, spec: ClaimSpec | None) -> None:
        if self._specs.get(ref) == spec:
            return
        if spec is None:
            del self._specs[ref]
        else:
            self._specs[ref] = spec
        for key in self._users.get(ref, ()):
            self.on_change(key)

    def _link(self, pod: DemandPod) -> None:
        for entry in pod.spec.resource_claims or ():
            for ref in _refs(pod, entry):
                self._users.setdefault(ref, set()).add(pod.key)
        if verdict(pod, on_foreign_node=False) is PodRole.DEMAND:
            for ref in set(_shared(pod)):
                insort(self._sharers.setdefault(ref, []), _place(pod))

    def _unlink(self, pod: DemandPod) -> None:
        for entry in pod.spec.resource_claims or ():
            for ref in _refs(pod, entry):
                _discard(self._users, ref, pod.key)
        for ref in set(_shared(pod)):
            places = self._sharers.get(ref, [])
            index = bisect_left(places, _place(pod))
            if index < len(places) and places[index] == _place(pod):
                del places[index]
            if not places:
                self._sharers.pop(ref, None)


def _discard(users: dict[ClaimRef, set[T]], ref: ClaimRef, key: T) -> None:
    found = users.get(ref, set())
    found.discard(key)
    if not found:
        users.pop(ref, None)


def _place(pod: DemandPod) -> tuple[str, str]:
    return (pod.metadata.creation_timestamp, pod.metadata.name)


def _shared(pod: DemandPod) -> Iterator[ClaimRef]:
    for entry in pod.spec.resource_claims or ():
        if entry.resource_claim_name:
            yield ClaimRef(CLAIM, pod.metadata.namespace, entry.resource_claim_name)


def _refs(pod: DemandPod, entry: PodResourceClaim) -> tuple[ClaimRef, ...]:
    """Where the amounts of one entry stand: a claim; or a template, else the claim made of it, as
    the template may be deleted while the Pod runs."""
    namespace = pod.metadata.namespace
    if entry.resource_claim_name:
        return (ClaimRef(CLAIM, namespace, entry.resource_claim_name),)
    if not entry.resource_claim_template_name:
        return ()
    made = (
        ClaimRef(CLAIM, namespace, status.resource_claim_name)
        for status in pod.status.resource_claim_statuses
        if status.name == entry.name and status.resource_claim_name
    )
    return (ClaimRef(TEMPLATE, namespace, entry.resource_claim_template_name), *made)


async def any_exists(client: KubeClient, refs: Iterable[ClaimRef]) -> bool:
    """Whether the API server has one of them although its watch has not brought it yet."""
    for ref in refs:
        kind = RESOURCE_CLAIMS if ref.kind == CLAIM else RESOURCE_CLAIM_TEMPLATES
        try:
            await client.get(kind, ref.name, ref.namespace)
        except NotFoundError:
            continue
        return True
    return False


def device_classes(mappings: Iterable[str]) -> dict[str, str]:
    """The mapping that texts such as `gpu.nvidia.com=nvidia.com/gpu` state; a ValueError names the
    text that cannot be used."""
    found: dict[str, str] = {}
    for text in mappings:
        name, _, resource = text.partition("=")
        if not _CLASS.fullmatch(name):
            raise ValueError(
                f"{text!r} names no DeviceClass: write CLASS=RESOURCE, such as "
                "gpu.nvidia.com=nvidia.com/gpu"
            )
        if len(resource) > _LONGEST_RESOURCE or not _RESOURCE.fullmatch(resource):
            raise ValueError(
                f"{text!r} names no resource: write CLASS=RESOURCE, such as "
                "gpu.nvidia.com=nvidia.com/gpu"
            )
        if found.setdefault(name, resource) != resource:
            raise ValueError(
                f"DeviceClass {name} is mapped to {found[name]} and to {resource}: keep one"
            )
    return found


def count_devices(spec: ClaimSpec, classes: DeviceClasses, where: str) -> Resources:
    """Milli-units by resource; `where` names the claim or template in a refusal."""
    total: Resources = {}
    for request in spec.devices.requests:
        total = add(total, _count(request, classes, where))
    return total


def _count(request: DeviceRequest, classes: DeviceClasses, where: str) -> Resources:
    alternatives = (request.exactly,) if request.exactly else request.first_available
    if not alternatives:
        raise UnsupportedClaimError(
            f"{_ADVICE}: request {request.name!r} of {where} has neither exactly nor "
            "firstAvailable. State one of them."
        )
    amounts = [(_resource(one, classes, where), one) for one in alternatives]
    resources = {resource for resource, _ in amounts}
    if len(resources) > 1:
        named = ", ".join(f"{one.device_class_name}={resource}" for resource, one in amounts)
        raise UnsupportedClaimError(
            f"{_ADVICE}: firstAvailable of {where} has DeviceClasses that are mapped to different "
            f"resources ({named}). Map them to one with {_setting()}, or name one class."
        )
    # Whichever alternative the scheduler takes, the machine has enough.
    return {amounts[0][0]: max(one.count for one in alternatives) * _MILLI}


def _resource(wanted: DeviceCount, classes: DeviceClasses, where: str) -> str:
    """The resource of one class, where the request is a number of it."""
    name = wanted.device_class_name
    devices = f"devices of DeviceClass {name}"
    if name not in classes:
        raise UnsupportedClaimError(
            f"{_ADVICE}: {where} asks for {devices}, which is not mapped to a resource. "
            f"Map it with {_setting(name)}."
        )
    if wanted.admin_access:
        raise UnsupportedClaimError(
            f"{_ADVICE}: {where} asks for admin access to {devices}, which takes none of them, and "
            f"{_setting()} counts devices that are taken. Ask without adminAccess."
        )
    if wanted.allocation_mode not in ("", "ExactCount"):
        raise UnsupportedClaimError(
            f"{_ADVICE}: {where} asks for {devices} with allocationMode {wanted.allocation_mode}, "
            f"which is not a number that {_setting()} could count. Use ExactCount with a count."
        )
    if not 0 < wanted.count <= MOST_DEVICES:
        raise UnsupportedClaimError(
            f"{_ADVICE}: {where} asks for {wanted.count} {devices}. Kubernetes allocates 1 to "
            f"{MOST_DEVICES} devices in a claim; change the count."
        )
    return classes[name]


def _setting(name: str = "") -> str:
    """The setting as people have to write it."""
    value = f" {name}=RESOURCE" if name else ""
    return (
        f"--device-class-mappings{value} of the pod controller (deviceClassMappings in its chart)"
    )
