"""The Kubernetes API as typed calls: what `reader` has, and create, apply, patch, delete, evict.

Every call has a deadline and raises the errors of `errors`. There is no PUT: whole objects are
written by server-side apply, single fields by a patch, and a patch that carries a resourceVersion
conflicts when another client wrote first. Keeping what was listed is left to `informer`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final, TypeVar

import msgspec

from bigfleet.kube.config import ClusterConfig
from bigfleet.kube.decoding import decode
from bigfleet.kube.errors import ApiError, ConflictError, NotFoundError
from bigfleet.kube.objects import PODS, Object, Resource
from bigfleet.kube.ports import KubeClock, Observer
from bigfleet.kube.reader import Reader
from bigfleet.kube.transport import DEADLINE, ApiRequest, ApiTransport
from bigfleet.wire.backoff import Backoff

T = TypeVar("T")

_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"
_JSON_PATCH: Final = "application/json-patch+json"

Body = Mapping[str, object] | msgspec.Struct
"""An object as it is sent: a plain mapping, or a struct."""


class Eviction(Enum):
    """How an API server answers an eviction."""

    EVICTED = "evicted"
    """The Pod is on its way out."""
    GONE = "gone"
    """There is no such Pod any more."""
    BLOCKED = "blocked"
    """A disruption budget does not allow it now; ask again later."""


class KubeClient(Reader):
    """Calls to one API server. Use it as a context, or close it."""

    @classmethod
    def connect(
        cls,
        config: ClusterConfig,
        *,
        qps: float = 50.0,
        burst: int = 100,
        user_agent: str = "bigfleet",
        clock: KubeClock | None = None,
        chance: random.Random | None = None,
        observer: Observer | None = None,
    ) -> KubeClient:
        """A client of its own connections. Nothing is sent before the first call."""
        return cls(
            ApiTransport(
                config,
                qps=qps,
                burst=burst,
                user_agent=user_agent,
                clock=clock,
                chance=chance,
                observer=observer,
            )
        )

    async def __aenter__(self) -> KubeClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self.transport.close()

    async def create(
        self, resource: Resource[T], body: Body, namespace: str = "", *, deadline: float = DEADLINE
    ) -> T:
        """Make an object. Not repeated when its fate is unknown: name it, and expect
        AlreadyExists."""
        request = ApiRequest(
            "POST",
            resource.path(namespace),
            "create",
            resource.plural,
            body=_encoded(body, resource),
        )
        return decode(await self.transport.call(request, deadline), resource.struct)

    async def apply(
        self, resource: Resource[T], name: str, body: Mapping[str, object], namespace: str = "", *,
        manager: str, subresource: str = "", deadline: float = DEADLINE,
    ) -> T:  # fmt: skip
        """Server-side apply: make these fields so, creating the object if need be; fields of this
        manager that are no longer named go away. Takes fields from other managers."""
        request = ApiRequest(
            "PATCH",
            resource.path(namespace, name, subresource),
            "patch",
            resource.plural,
            {"fieldManager": manager, "force": "true"},
            _encoded(_with_name(body, name, namespace), resource),
            _APPLY,
            repeatable=True,
        )
        return decode(await self.transport.call(request, deadline), resource.struct)

    async def merge_patch(
        self, resource: Resource[T], name: str, patch: Mapping[str, object], namespace: str = "", *,
        subresource: str = "", deadline: float = DEADLINE,
    ) -> T:  # fmt: skip
        """Set fields; None removes one. With metadata.resourceVersion it conflicts if that is
        old."""
        return await self._patch(resource, name, patch, namespace, subresource, _MERGE, deadline)

    async def json_patch(
        self, resource: Resource[T], name: str, operations: Sequence[Mapping[str, object]],
        namespace: str = "", *, subresource: str = "", deadline: float = DEADLINE,
    ) -> T:  # fmt: skip
        """Operations on paths (RFC 6902), all or none; a failed `test` is an InvalidError."""
        return await self._patch(
            resource, name, operations, namespace, subresource, _JSON_PATCH, deadline
        )

    async def _patch(
        self, resource: Resource[T], name: str, patch: object, namespace: str, subresource: str,
        content_type: str, deadline: float,
    ) -> T:  # fmt: skip
        path = resource.path(namespace, name, subresource)
        request = ApiRequest(
            "PATCH",
            path,
            "patch",
            resource.plural,
            body=msgspec.json.encode(patch),
            content_type=content_type,
            # Setting a field twice is setting it; operations on lists are not.
            repeatable=content_type == _MERGE,
        )
        return decode(await self.transport.call(request, deadline), resource.struct)

    async def change(
        self, resource: Resource[T], name: str, decide: Callable[[T], Mapping[str, object] | None],
        namespace: str = "", *, subresource: str = "", tries: int = 10, deadline: float = DEADLINE,
    ) -> T:  # fmt: skip
        """Read, decide, merge-patch what was decided, and start over when another client
        wrote first.

        `decide` gets the object as it is and returns the patch, or None when all is well. The patch
        is bound to the version that was read.
        """
        read = resource.read_as(msgspec.Raw)
        backoff = Backoff(first=0.02, longest=1.0, chance=self.transport.chance)
        while True:
            raw = await self.get(read, name, namespace, deadline=deadline)
            seen = decode(raw, resource.struct)
            patch = decide(seen)
            if patch is None:
                return seen
            version = decode(raw, Object).metadata.resource_version
            bound = _bound_to(patch, version)
            try:
                return await self.merge_patch(
                    resource, name, bound, namespace, subresource=subresource, deadline=deadline
                )
            except ConflictError:
                if backoff.tries + 1 >= tries:
                    raise
            await self.clock.sleep(backoff.next())

    async def delete(
        self, resource: Resource[T], name: str, namespace: str = "", *, uid: str = "",
        grace_seconds: int | None = None, deadline: float = DEADLINE,
    ) -> bool:  # fmt: skip
        """Remove an object, and what belongs to it later; False when it was gone already. With a
        uid only that very object: another one of the same name is a ConflictError."""
        options: dict[str, object] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            **({"preconditions": {"uid": uid}} if uid else {}),
            **({"gracePeriodSeconds": grace_seconds} if grace_seconds is not None else {}),
        }
        request = ApiRequest(
            "DELETE",
            resource.path(namespace, name),
            "delete",
            resource.plural,
            body=msgspec.json.encode(options),
            repeatable=True,
        )
        try:
            await self.transport.call(request, deadline)
        except NotFoundError:
            return False
        return True

    async def evict(
        self, pod: str, namespace: str, *, uid: str = "", grace_seconds: int | None = None,
        deadline: float = DEADLINE,
    ) -> Eviction:  # fmt: skip
        """Ask for a Pod to go, which its disruption budgets may refuse for now."""
        options: dict[str, object] = {
            **({"preconditions": {"uid": uid}} if uid else {}),
            **({"gracePeriodSeconds": grace_seconds} if grace_seconds is not None else {}),
        }
        body: dict[str, object] = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": options,
        }
        request = ApiRequest(
            "POST",
            PODS.path(namespace, pod, "eviction"),
            "create",
            "pods",
            body=msgspec.json.encode(body),
            repeatable=True,
            refusal_is_final=_blocked_by_budget,
        )
        try:
            await self.transport.call(request, deadline)
        except NotFoundError:
            return Eviction.GONE
        except ConflictError as error:
            # Another Pod has that name now, so ours is gone. Other conflicts are of a Pod that
            # changes all the time while it starts.
            if uid and "UID" in str(error):
                return Eviction.GONE
            raise
        except ApiError as error:
            if _blocked_by_budget(error):
                return Eviction.BLOCKED
            raise
        return Eviction.EVICTED


def _blocked_by_budget(error: ApiError) -> bool:
    """Whether a refusal is a budget's answer and not the server's own trouble. A Pod under two
    budgets is answered with 500, and trying again at once changes nothing about either."""
    return any(cause.reason == "DisruptionBudget" for cause in error.causes) or (
        (error.code == 429 and "disruption budget" in str(error))
        or (error.code == 500 and "PodDisruptionBudget" in str(error))
    )


def _encoded(body: Body, resource: Resource[T]) -> bytes:
    named = {"apiVersion": resource.api_version, "kind": resource.kind}
    if isinstance(body, msgspec.Struct):
        return msgspec.json.encode({**named, **msgspec.to_builtins(body)})
    return msgspec.json.encode({**named, **body})


def _with_name(body: Mapping[str, object], name: str, namespace: str) -> dict[str, object]:
    given = body.get("metadata")
    metadata = {**(given if isinstance(given, Mapping) else {}), "name": name}
    return {**body, "metadata": {**metadata, **({"namespace": namespace} if namespace else {})}}


def _bound_to(patch: Mapping[str, object], version: str) -> dict[str, object]:
    given = patch.get("metadata")
    metadata = given if isinstance(given, Mapping) else {}
    return {**patch, "metadata": {**metadata, "resourceVersion": version}}
