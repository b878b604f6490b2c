"""Hosts that are imagined, and Nodes that are not.

A host is kept in the kit's store, like one of the kit's substrate in memory, with the same
settings for delays and failures.
Configure makes its Node appear in the API server that the bootstrap data names; Drain moves pods
away through the eviction API and removes the Node; Delete removes what is left of it.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from bigfleet_provider_kwok.api import NodeApi
from bigfleet_provider_kwok.errors import ApiError
from bigfleet_provider_kwok.join import Join, read_join
from bigfleet_provider_kwok.nodes import (
    PROVIDER_LABEL,
    eviction_grace,
    have_to_leave,
    is_ready,
    node_of,
)
from bigfleet_provider_kwok.servers import Place, Servers
from bigfleet_provider_kwok.shapes import Shapes
from bigfleet_providerkit import (
    CommandKind,
    Gone,
    Host,
    HostCommand,
    HostResult,
    MemorySubstrate,
    SubstrateError,
)
from bigfleet_providerkit.kit import Kit, KvShelf

# What is left of a drain's time for removing the node, and what a removal by Delete may take.
LAST_STEPS = 2.0
HOST_PART, JOIN_PART = "host/", "join/"


@dataclass(frozen=True, slots=True)
class ShelfPart:
    """The entries of a shelf whose keys begin alike."""

    kv_shelf: KvShelf
    prefix: str

    def items(self) -> dict[str, bytes]:
        """These entries, without the prefix."""
        found = self.kv_shelf.items().items()
        size = len(self.prefix)
        return {key[size:]: value for key, value in found if key.startswith(self.prefix)}

    async def put(self, key: str, value: bytes | None) -> None:
        """Keep or remove one."""
        await self.kv_shelf.put(self.prefix + key, value)


class KwokSubstrate(MemorySubstrate):
    """Imagined hosts with real nodes."""

    def __init__(
        self,
        kit: Kit,
        servers: Servers,
        shapes: Shapes,
        *,
        slow: float = 0.0,
        fail_rate: Mapping[str, float] | None = None,
        seed: int = 1,
    ) -> None:
        hosts = replace(kit, kv_shelf=ShelfPart(kit.kv_shelf, HOST_PART))
        super().__init__(hosts, slow=slow, fail_rate=fail_rate, seed=seed)
        # The pause comes before the node appears, not after it.
        self.delays |= {"configure": 0.0, "drain": 0.0}
        self._slow = slow
        self._servers = servers
        self._shapes = shapes
        self._joins = ShelfPart(kit.kv_shelf, JOIN_PART)
        self._joined = {ref: Place(**json.loads(raw)) for ref, raw in self._joins.items().items()}
        self._seen: dict[Place, tuple[float, dict[str, bool]]] = {}

    async def run_on_host(self, host: Host, command: HostCommand) -> HostResult:
        """Join or leave a cluster; then what the kit's own hosts remember of it."""
        present = self.hosts.get(host.ref)
        if command.kind is CommandKind.CONFIGURE and present is not None:
            if present.joined in (None, command.cluster):
                await self._join(host, command)
        elif command.kind is CommandKind.DRAIN and host.ref in self._joined:
            left = await self._leave(host, command)
            if left:
                return HostResult(1, stderr=f"pods are left over: {', '.join(left[:10])}")
        return await super().run_on_host(host, command)

    async def node_ready(self, host: Host, cluster: str) -> bool:
        """Whether the node is Ready; where the kit has a watch of its own, that one decides."""
        if self._servers.watched(cluster):
            return True
        place = self._joined.get(host.ref)
        if place is None:
            return False
        return (await self._ready_nodes(place)).get(host.ref, False)

    async def terminate(self, host: Host) -> None:
        """The host is gone, and its node with it; an API server that is away keeps a dead node."""
        place = self._joined.get(host.ref)
        if place is not None:
            with suppress(SubstrateError, ApiError):
                await (await self._servers.of(place)).delete_node(host.ref)
            await self._forget(host.ref)
        await super().terminate(host)

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._servers.aclose()

    async def _join(self, host: Host, command: HostCommand) -> None:
        join = read_join(command.secret) if self._servers.reads_bootstrap_data else Join()
        place = self._servers.place(join, command.cluster)
        api = await self._servers.of(place)
        shape = self._shapes.of(host)
        node = node_of(host, self._kit.label, shape, join, command.taints)
        await self._kit.clock.sleep(self._slow)
        # Remembered first: a node that appeared without its host knowing could never be removed.
        self._joined[host.ref] = place
        await self._joins.put(host.ref, json.dumps(asdict(place)).encode())
        await self._kit.acall("CreateNode", partial(_create, api, node))

    async def _leave(self, host: Host, command: HostCommand) -> list[str]:
        """Move the pods away and remove the node; the names of pods that stayed."""
        clock, api = self._kit.clock, await self._servers.of(self._joined[host.ref])
        ends = clock.monotonic() + max(0.0, command.limit - LAST_STEPS)
        await clock.sleep(self._slow)
        with suppress(Gone):
            cordon: dict[str, Any] = {"spec": {"unschedulable": True}}
            await self._kit.acall("PatchNode", partial(api.patch_node, host.ref, cordon))
        while True:
            found = await self._kit.acall("ListPods", partial(api.pods_on, host.ref))
            pods = have_to_leave(found)
            if not pods:
                break
            if clock.monotonic() >= ends:
                return [f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in pods]
            for pod in pods:
                if not pod["metadata"].get("deletionTimestamp"):
                    await self._evict(api, pod, command.grace)
            await self._kit.pause()
        with suppress(Gone):
            await self._kit.acall("DeleteNode", partial(api.delete_node, host.ref))
        await self._forget(host.ref)
        return []

    async def _evict(self, api: NodeApi, pod: Mapping[str, Any], grace: int) -> None:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        wanted = eviction_grace(pod, grace)
        await self._kit.acall("EvictPod", partial(_evict, api, namespace, name, wanted))

    async def _forget(self, ref: str) -> None:
        self._joined.pop(ref, None)
        await self._joins.put(ref, None)

    async def _ready_nodes(self, place: Place) -> dict[str, bool]:
        """One listing serves everyone who asks within a poll interval."""
        now = self._kit.clock.monotonic()
        listed, ready = self._seen.get(place, (float("-inf"), {}))
        if now - listed < self._kit.poll_interval:
            return ready
        api = await self._servers.of(place)
        selector = f"{PROVIDER_LABEL}={self._kit.label}"
        nodes = await self._kit.acall("ListNodes", partial(api.list_nodes, selector))
        ready = {node["metadata"]["name"]: is_ready(node) for node in nodes}
        self._seen[place] = (now, ready)
        return ready


async def _create(api: NodeApi, node: dict[str, Any]) -> None:
    """Register; a node that is there already is this host's from an earlier attempt."""
    try:
        await api.create_node(node)
    except ApiError as error:
        if error.status != 409:
            raise


async def _evict(api: NodeApi, namespace: str, name: str, grace: int | None) -> None:
    """Ask; a pod that is gone, or one that a budget keeps, is met again at the next look."""
    try:
        await api.evict(namespace, name, grace)
    except ApiError as error:
        if error.status not in (404, 409, 429):
            raise
