"""Kubernetes' objects as far as anybody here reads them, and what a kind is called on the wire.

Structs are partial: msgspec skips every field that a struct does not name, so an object costs a few
microseconds and the bytes of what is wanted. A caller that needs more or less of a kind writes a
struct of its own and reads the kind as that (`PODS.read_as(DemandPod)`). The three kinds of our own
group are in `fleet`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, Protocol, TypeVar
from urllib.parse import quote

import msgspec

T = TypeVar("T")
U = TypeVar("U")


class Partial(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False
):
    """The base of partial structs: snake_case here, camelCase there; the garbage collector need not
    look inside, because frozen trees hold no cycles."""


class OwnerReference(Partial, frozen=True, kw_only=True):
    """Whom an object goes with."""

    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class Meta(Partial, frozen=True, kw_only=True):
    """The usual metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()


class MetaLike(Protocol):
    """What every struct's metadata has to hold, so that objects can be told apart and compared."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


class ObjectLike(Protocol):
    """Anything with metadata: what informers keep."""

    @property
    def metadata(self) -> MetaLike: ...


class Object(Partial, frozen=True, kw_only=True):
    """An object of which only the metadata matters."""

    metadata: Meta = Meta()


def key_of(found: ObjectLike) -> str:
    """`namespace/name`, or the name alone for cluster-scoped objects."""
    meta = found.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """A kind of object: its place in the API, and the struct that it is read as."""

    group: str
    version: str
    plural: str
    kind: str
    struct: type[T]
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """As in an object's apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def read_as(self, struct: type[U]) -> Resource[U]:
        """The same kind, read as another struct (or as `dict`)."""
        return replace(self, struct=struct)  # type: ignore[arg-type, return-value]

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL's path of a collection, an object or a subresource."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/" + "/".join(parts)


PODS = Resource("", "v1", "pods", "Pod", Object)
NODES = Resource("", "v1", "nodes", "Node", Object, namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret", Object)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", Object)
EVENTS = Resource("", "v1", "events", "Event", Object)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", Object, namespaced=False)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", Object)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", Object)
DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", Object)
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", Object)
RESOURCE_CLAIM_TEMPLATES = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", Object
)
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", Object, namespaced=False
)
