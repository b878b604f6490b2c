"""No proxy that is meant for the web stands between BigFleet's processes; one for gRPC does."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health

DEAD = "http://127.0.0.1:1"
PROXIES = ("grpc_proxy", "http_proxy", "https_proxy", "no_proxy", "no_grpc_proxy", "NO_PROXY")
CLIENTS = {
    "bigfleet": "from bigfleet.wire.channel import open_channel\nopened = open_channel(at, None)",
    "etcd": "from bigfleet.coordinator.store.etcd.connection.members import _channel\n"
    "opened = _channel(at, None)",
    "conformance": "from bigfleet_conformance.harness.link import open_channel\n"
    "opened = open_channel(at)",
    "dashboard": "from bigfleet_dashboard.sources.channels import Channels\n"
    "opened = Channels(None).to(at)",
    "providerkit": "import grpc.aio\nfrom bigfleet_providerkit.testing import CHANNEL_OPTIONS\n"
    "opened = grpc.aio.insecure_channel(at, options=CHANNEL_OPTIONS)",
}
ASKED_FOR = [name for name in CLIENTS if name != "providerkit"]
CALL = """
import asyncio, sys
import bigfleet.wire.grpc_env
import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
at = sys.argv[1]
async def call():
    {opened}
    stub = health_pb2_grpc.HealthStub(opened)
    try:
        await stub.Check(health_pb2.HealthCheckRequest(), timeout=float(sys.argv[2]))
        print("answered")
    except grpc.aio.AioRpcError as error:
        print(error.code().name)
asyncio.run(call())
"""


@pytest.fixture
async def address() -> AsyncIterator[str]:
    server = grpc.aio.server()
    servicer = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    yield f"127.0.0.1:{port}"
    await server.stop(0)


async def ask(client: str, address: str, seconds: float, **proxies: str) -> str:
    """How a call ends in a process with these proxies and no others."""
    script = CALL.format(opened=CLIENTS[client].replace("\n", "\n    "))
    kept = {name: value for name, value in os.environ.items() if name not in PROXIES}
    process = await _run([sys.executable, "-c", script, address, str(seconds)], {**kept, **proxies})
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


async def _run(words: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        subprocess.run, words, env=environment, capture_output=True, text=True, timeout=90
    )


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_proxy_for_the_web_is_not_asked(client: str, address: str) -> None:
    assert await ask(client, address, 60.0, http_proxy=DEAD, https_proxy=DEAD) == "answered"


@pytest.mark.parametrize("client", ASKED_FOR)
async def test_a_proxy_for_grpc_is_asked(client: str, address: str) -> None:
    assert await ask(client, address, 3.0, grpc_proxy=DEAD) in ("UNAVAILABLE", "DEADLINE_EXCEEDED")
