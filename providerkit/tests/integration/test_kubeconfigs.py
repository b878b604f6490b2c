"""Readiness by a kubeconfig: one watch per cluster against an API server of a page."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from bigfleet_providerkit import Host, Retryable
from bigfleet_providerkit.readiness.kube import KubeNodes, read_kubeconfig
from bigfleet_providerkit.testing import eventually


def node(name: str, provider_id: str, ready: str) -> dict[str, object]:
    return {
        "metadata": {"name": name},
        "spec": {"providerID": provider_id},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


class ApiServer:
    """Lists and watches nodes."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, object]] = []
        self.events: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        self.lists = 0
        self.tokens: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.tokens.append(request.headers.get("Authorization", ""))
        if "watch" not in request.query:
            self.lists += 1
            return web.json_response({"metadata": {"resourceVersion": "7"}, "items": self.nodes})
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            event = await self.events.get()
            await response.write(json.dumps(event).encode() + b"\n")


@pytest.fixture
async def api() -> AsyncIterator[tuple[ApiServer, int]]:
    server = ApiServer()
    app = web.Application()
    app.add_routes([web.get("/api/v1/nodes", server.answer)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield server, int(runner.addresses[0][1])
    await runner.cleanup()


def kubeconfig(port: int) -> str:
    return json.dumps(
        {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "u", "user": {"token": "secret"}}],
        }
    )


async def test_a_node_is_the_machines_by_provider_id_or_name(
    api: tuple[ApiServer, int], tmp_path: Path
) -> None:
    server, port = api
    server.nodes = [node("n-1", "aws:///zone/i-1", "True"), node("m-2", "", "False")]
    (tmp_path / "cluster-a.yaml").write_text(kubeconfig(port))
    nodes = KubeNodes(tmp_path)
    assert nodes.covers("cluster-a")
    assert not nodes.covers("cluster-b")
    assert not nodes.covers("../cluster-a")
    assert await nodes.ready(Host("i-1"), "m-1", "cluster-a")
    assert await nodes.ready(Host("x", node_name="n-1"), "m-1", "cluster-a")
    assert not await nodes.ready(Host("i-2"), "m-2", "cluster-a")
    await server.events.put({"type": "MODIFIED", "object": node("m-2", "", "True")})

    async def joined() -> bool:
        return await nodes.ready(Host("i-2"), "m-2", "cluster-a")

    await eventually(joined)
    await server.events.put({"type": "DELETED", "object": node("m-2", "", "True")})

    async def left() -> bool:
        return not await joined()

    await eventually(left)
    assert server.lists == 1
    assert server.tokens[0] == "Bearer secret"
    (tmp_path / "cluster-a.yaml").unlink()
    with pytest.raises(Retryable, match="no kubeconfig for cluster-a"):
        await nodes.ready(Host("i-1"), "m-1", "cluster-a")
    await nodes.aclose()


def test_a_kubeconfig_whose_credentials_come_from_a_program_is_refused() -> None:
    text = """
        clusters: [{name: a, cluster: {server: "https://10.0.0.1"}}]
        users: [{name: a, user: {exec: {command: aws, args: [eks, get-token]}}}]
        contexts: [{name: a, context: {cluster: a, user: a}}]
        current-context: a
    """
    with pytest.raises(ValueError, match="gets credentials from a program"):
        read_kubeconfig(text)


def test_a_kubeconfig_without_a_server_is_refused() -> None:
    with pytest.raises(ValueError, match="names no server"):
        read_kubeconfig("{}")


async def test_a_kubeconfig_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bigfleet_providerkit.readiness.kube.FIRST_LIST", 0.2)
    (tmp_path / "cluster-a.yaml").write_text("users: [\n")
    nodes = KubeNodes(tmp_path)
    with pytest.raises(Retryable, match="nodes of cluster-a cannot be listed: ParserError"):
        await nodes.ready(Host("i-1"), "m-1", "cluster-a")
    await nodes.aclose()


async def test_a_watch_that_the_server_ends_with_an_error_is_not_begun_again_at_once(
    api: tuple[ApiServer, int], tmp_path: Path
) -> None:
    server, port = api
    (tmp_path / "cluster-a.yaml").write_text(kubeconfig(port))
    for _ in range(3):
        await server.events.put({"type": "ERROR", "object": {"message": "too old"}})
    nodes = KubeNodes(tmp_path)
    await nodes.ready(Host("i-1"), "m-1", "cluster-a")

    async def reported() -> bool:
        return nodes._nodes("cluster-a").trouble == "ValueError: the watch ended: too old"

    await eventually(reported)
    assert server.lists == 1
    await nodes.aclose()
