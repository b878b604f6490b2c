"""The provider's own look at nodes: one watch per cluster for which there is a kubeconfig.

`<cluster-id>.yaml` in a folder is the kubeconfig of that cluster, read again when it changes. The
watch keeps, per node, its name, the end of its provider id and whether it is Ready; asking about a
machine is a look into that table, never a call.
"""

import asyncio
import base64
import contextlib
import json
import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import yaml

from bigfleet_providerkit.errors import Retryable
from bigfleet_providerkit.substrate import Host

RETRY = 2.0
FIRST_LIST = 15.0
WATCH_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach one API server."""

    server: str
    tls: ssl.SSLContext | bool
    headers: Mapping[str, str]


@dataclass(slots=True)
class Nodes:
    """The nodes of one cluster, as the watch saw them."""

    ready: dict[str, tuple[str, bool]] = field(default_factory=dict)
    allocatable: dict[str, Mapping[str, object]] = field(default_factory=dict)
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    trouble: str = ""

    def saw(self, node: Mapping[str, object], *, gone: bool) -> None:
        """Take one Node object."""
        name, tail, ready = read_node(node)
        if gone:
            self.ready.pop(name, None)
            self.allocatable.pop(name, None)
        else:
            self.ready[name] = (tail, ready)
            self.allocatable[name] = _map(_map(node.get("status")).get("allocatable"))

    def verdict(self, host: Host, machine: str) -> bool:
        """Whether the node of this machine is Ready."""
        return any(self.ready[name][1] for name in self._names(host, machine))

    def report(self, host: Host, machine: str) -> Mapping[str, object]:
        """What the Ready node of this machine says that Pods can use; empty without one."""
        ready = (name for name in self._names(host, machine) if self.ready[name][1])
        return next((self.allocatable[name] for name in ready), {})

    def _names(self, host: Host, machine: str) -> list[str]:
        for name in (host.node_name, machine):
            if name and name in self.ready:
                return [name]
        return [name for name, (tail, _) in self.ready.items() if tail and tail == host.ref]


def read_node(node: Mapping[str, object]) -> tuple[str, str, bool]:
    """Name, end of the provider id, Ready."""
    metadata, spec, status = (_map(node.get(key)) for key in ("metadata", "spec", "status"))
    conditions = status.get("conditions")
    ready = any(
        _map(item).get("type") == "Ready" and _map(item).get("status") == "True"
        for item in (conditions if isinstance(conditions, list) else [])
    )
    tail = str(spec.get("providerID") or "").rpartition("/")[2]
    return str(metadata.get("name") or ""), tail, ready


def _map(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def read_kubeconfig(text: str) -> Access:
    """The access that the current context of a kubeconfig gives."""
    config = _map(yaml.safe_load(text))
    context = _named(config, "contexts", str(config.get("current-context") or ""), "context")
    cluster = _named(config, "clusters", str(context.get("cluster") or ""), "cluster")
    user = _named(config, "users", str(context.get("user") or ""), "user")
    server = str(cluster.get("server") or "")
    if not server:
        raise ValueError("the kubeconfig names no server")
    if "exec" in user or "auth-provider" in user:
        raise ValueError(
            "its user gets credentials from a program (exec), which is not run here; make a "
            "kubeconfig with a service account's token or a client certificate"
        )
    headers = {}
    token = user.get("token")
    if not token and user.get("tokenFile"):
        token = Path(str(user["tokenFile"])).read_text("utf-8").strip()
    if token:
        headers["Authorization"] = f"Bearer {token}"
    tls = _tls(cluster, user) if server.startswith("https") else False
    return Access(server.rstrip("/"), tls, headers)


def _named(config: Mapping[str, object], kind: str, name: str, key: str) -> Mapping[str, object]:
    entries = config.get(kind)
    for entry in entries if isinstance(entries, list) else []:
        if not name or _map(entry).get("name") == name:
            return _map(_map(entry).get(key))
    return {}


def _tls(cluster: Mapping[str, object], user: Mapping[str, object]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if cluster.get("certificate-authority-data"):
        data = base64.b64decode(str(cluster["certificate-authority-data"]))
        context = ssl.create_default_context(cadata=data.decode())
    elif cluster.get("certificate-authority"):
        context = ssl.create_default_context(cafile=str(cluster["certificate-authority"]))
    if user.get("client-certificate-data"):
        with _as_files(user, "client-certificate-data", "client-key-data") as (cert, key):
            context.load_cert_chain(cert, key)
    elif user.get("client-certificate"):
        context.load_cert_chain(str(user["client-certificate"]), str(user["client-key"]))
    return context


@contextlib.contextmanager
def _as_files(user: Mapping[str, object], *names: str) -> Iterator[list[str]]:
    """The ssl module reads client certificates from files only."""
    paths = []
    try:
        for name in names:
            handle, path = tempfile.mkstemp()
            paths.append(path)
            with os.fdopen(handle, "wb") as file:
                file.write(base64.b64decode(str(user[name])))
        yield paths
    finally:
        for path in paths:
            Path(path).unlink(missing_ok=True)


class KubeNodes:
    """Watches the nodes of every cluster that was asked about."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._watches: dict[str, tuple[float, Nodes, asyncio.Task[None]]] = {}

    def covers(self, cluster: str) -> bool:
        """Whether there is a kubeconfig for this cluster."""
        return self._file(cluster) is not None

    async def ready(self, host: Host, machine: str, cluster: str) -> bool:
        """Whether the machine's Node is Ready, by the watch of its cluster."""
        nodes = self._nodes(cluster)
        try:
            await asyncio.wait_for(nodes.synced.wait(), FIRST_LIST)
        except TimeoutError as error:
            raise Retryable(f"nodes of {cluster} cannot be listed: {nodes.trouble}") from error
        return nodes.verdict(host, machine)

    def allocatable(self, host: Host, machine: str, cluster: str) -> Mapping[str, object]:
        """What the machine's Node reports; empty while the watch has not seen it Ready."""
        known = self._watches.get(cluster)
        return known[1].report(host, machine) if known is not None else {}

    async def aclose(self) -> None:
        """End all watches."""
        for _, _, task in self._watches.values():
            task.cancel()

    def _file(self, cluster: str) -> Path | None:
        if not cluster or "/" in cluster or "\0" in cluster or cluster.startswith("."):
            return None
        path = self._folder / f"{cluster}.yaml"
        return path if path.is_file() else None

    def _nodes(self, cluster: str) -> Nodes:
        path = self._file(cluster)
        if path is None:
            raise Retryable(f"there is no kubeconfig for {cluster} any more")
        changed = path.stat().st_mtime
        known = self._watches.get(cluster)
        if known is not None and known[0] == changed and not known[2].done():
            return known[1]
        if known is not None:
            known[2].cancel()
        nodes = Nodes()
        task = asyncio.get_running_loop().create_task(_watch(path, nodes))
        self._watches[cluster] = (changed, nodes, task)
        return nodes


async def _watch(path: Path, nodes: Nodes) -> None:
    while True:
        try:
            access = read_kubeconfig(await asyncio.to_thread(path.read_text, "utf-8"))
            async with aiohttp.ClientSession(headers=access.headers) as session:
                version = await _list(session, access, nodes)
                await _follow(session, access, nodes, version)
        except (
            *(OSError, ValueError, KeyError, TimeoutError),
            *(yaml.YAMLError, aiohttp.ClientError),
        ) as error:
            nodes.trouble = f"{type(error).__name__}: {error}"
            await asyncio.sleep(RETRY)


async def _list(session: aiohttp.ClientSession, access: Access, nodes: Nodes) -> str:
    url = f"{access.server}/api/v1/nodes"
    timeout = aiohttp.ClientTimeout(total=30)
    async with session.get(url, ssl=access.tls, timeout=timeout) as response:
        response.raise_for_status()
        data = _map(await response.json())
    nodes.ready.clear()
    nodes.allocatable.clear()
    items = data.get("items")
    for item in items if isinstance(items, list) else []:
        nodes.saw(_map(item), gone=False)
    nodes.synced.set()
    return str(_map(data.get("metadata")).get("resourceVersion") or "0")


async def _follow(
    session: aiohttp.ClientSession, access: Access, nodes: Nodes, version: str
) -> None:
    query = f"watch=true&resourceVersion={version}&timeoutSeconds={WATCH_SECONDS}"
    timeout = aiohttp.ClientTimeout(total=WATCH_SECONDS + 30, sock_connect=10)
    url = f"{access.server}/api/v1/nodes?{query}"
    async with session.get(url, ssl=access.tls, timeout=timeout) as response:
        response.raise_for_status()
        async for line in response.content:
            event = _map(json.loads(line))
            if event.get("type") == "ERROR":
                # Too old, most likely: list again, but not at once.
                raise ValueError(f"the watch ended: {_map(event.get('object')).get('message')}")
            nodes.saw(_map(event.get("object")), gone=event.get("type") == "DELETED")
