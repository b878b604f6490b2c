"""The few calls of the Kubernetes API that a host and its drain need.

Connections are kept per API server. No call is repeated here and none waits long: the kit retries
and counts.
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import aiohttp

from bigfleet_provider_kwok.errors import UNREACHABLE, ApiError
from bigfleet_providerkit.readiness.kube import Access

CONNECT_WITHIN, READ_WITHIN = 5.0, 30.0
Body = dict[str, Any]
NODES = "/api/v1/nodes"
PAGE = "500"


class NodeApi:
    """One API server."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._session = aiohttp.ClientSession(
            headers=dict(access.headers),
            timeout=aiohttp.ClientTimeout(sock_connect=CONNECT_WITHIN, sock_read=READ_WITHIN),
        )

    async def create_node(self, node: Body) -> Body:
        """Register a node with its capacity, as a kubelet does."""
        return await self._call("POST", NODES, body=node)

    async def get_node(self, name: str) -> Body:
        """One node."""
        return await self._call("GET", f"{NODES}/{quote(name)}")

    async def list_nodes(self, selector: str) -> list[Body]:
        """All nodes with these labels, page by page."""
        return await self._pages(NODES, {"labelSelector": selector})

    async def patch_node(self, name: str, change: Body) -> Body:
        """Merge a change into a node."""
        return await self._call("PATCH", f"{NODES}/{quote(name)}", body=change)

    async def delete_node(self, name: str) -> Body:
        """Remove a node."""
        return await self._call("DELETE", f"{NODES}/{quote(name)}")

    async def pods_on(self, name: str) -> list[Body]:
        """All pods bound to a node."""
        return await self._pages("/api/v1/pods", {"fieldSelector": f"spec.nodeName={name}"})

    async def evict(self, namespace: str, name: str, grace: int | None) -> Body:
        """Ask for a pod to leave; 429 means that a disruption budget says not now."""
        body: Body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name},
        }
        if grace is not None:
            body["deleteOptions"] = {"gracePeriodSeconds": grace}
        path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(name)}/eviction"
        return await self._call("POST", path, body=body)

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._session.close()

    async def _pages(self, path: str, query: Mapping[str, str]) -> list[Body]:
        items: list[Body] = []
        cursor = ""
        while True:
            wanted = {**query, "limit": PAGE, **({"continue": cursor} if cursor else {})}
            shown = await self._call("GET", path, wanted)
            items += shown.get("items") or []
            cursor = str((shown.get("metadata") or {}).get("continue") or "")
            if not cursor:
                return items

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
    ) -> Body:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            async with self._session.request(
                method,
                f"{self._access.server}{path}",
                params=query,
                data=None if body is None else json.dumps(body),
                headers={"Content-Type": kind, "Accept": "application/json"},
                ssl=self._access.tls,
            ) as answer:
                text = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ApiError(UNREACHABLE, f"{method} {path}: {error!r}") from error
        reply = _object(text)
        if answer.status >= 400:
            after = answer.headers.get("Retry-After", "")
            reason = str(reply.get("message") or answer.reason)
            raise ApiError(
                answer.status,
                f"{method} {path}: {answer.status} {reason}",
                float(after) if after.isdecimal() else None,
            )
        return reply


def _object(text: bytes) -> Body:
    try:
        reply = json.loads(text) if text else {}
    except ValueError:
        return {"message": text[:200].decode(errors="replace")}
    return reply if isinstance(reply, dict) else {}
