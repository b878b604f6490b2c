"""A real control plane with our kinds, and an operator and a pod controller that run on it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from bigfleet.operator.server import RunningOperator as OperatorRunning
from bigfleet.operator.server import serve as serve_operator
from bigfleet.operator.settings import OperatorSettings
from bigfleet.podcontroller.server import ServedController as ControllerRunning
from bigfleet.podcontroller.server import serve as serve_controller
from bigfleet.podcontroller.settings import PodControllerSettings
from bigfleet.shard.operators.grpc_server import SERVICE, add_sessions
from bigfleet.wire.server import WireServer
from kube.plane import ControlPlane, control_plane
from operators import Desk, inline

CRDS = Path(__file__).parents[3] / "api" / "crd"
PATIENCE = 60.0
Document = dict[str, Any]


@contextlib.contextmanager
def cluster() -> Iterator[ControlPlane]:
    """A control plane that knows our kinds."""
    with control_plane() as plane:
        plane.install(CRDS)
        yield plane


@contextlib.asynccontextmanager
async def shard_sessions(desk: Desk) -> AsyncIterator[str]:
    """A shard's sessions on a port; gives its address."""
    server = WireServer([SERVICE])
    add_sessions(server.grpc, desk.sessions, inline, lambda _context: None)
    address = await server.start("127.0.0.1:0")
    try:
        yield address
    finally:
        await server.stop(0)


@contextlib.asynccontextmanager
async def operator(
    plane: ControlPlane, address: str, **settings: Any
) -> AsyncIterator[OperatorRunning]:
    """An operator of that control plane."""
    given = {
        "cluster_id": "c-1", "shard_addr": address, "kubeconfig": str(plane.kubeconfig),
        "allow_stub_bootstrap": True, "metrics_addr": "127.0.0.1:0", "identity": "op-1",
    }  # fmt: skip
    stop, running = asyncio.Event(), asyncio.get_running_loop().create_future()
    made = OperatorSettings.load({**given, **settings})
    life = asyncio.ensure_future(serve_operator(made, stop, "1.2.3", running.set_result))
    async with _living(life, stop, running) as found:
        yield found


@contextlib.asynccontextmanager
async def pod_controller(plane: ControlPlane, **settings: Any) -> AsyncIterator[ControllerRunning]:
    """A pod controller of that control plane."""
    given = {
        "kubeconfig": str(plane.kubeconfig), "metrics_addr": "127.0.0.1:0", "identity": "pc-1",
    }  # fmt: skip
    stop, running = asyncio.Event(), asyncio.get_running_loop().create_future()
    made = PodControllerSettings.load({**given, **settings})
    life = asyncio.ensure_future(serve_controller(made, stop, "1.2.3", running.set_result))
    async with _living(life, stop, running) as found:
        yield found


@contextlib.asynccontextmanager
async def _living(
    life: asyncio.Future[None], stop: asyncio.Event, running: asyncio.Future[Any]
) -> AsyncIterator[Any]:
    await asyncio.wait({life, running}, return_when=asyncio.FIRST_COMPLETED)
    if life.done():
        await life
    try:
        yield running.result()
    finally:
        stop.set()
        await asyncio.wait_for(life, PATIENCE)


async def until(holds: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Wait until something holds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not await asyncio.to_thread(holds):
        assert loop.time() < end, f"{what} never came to pass"
        await asyncio.sleep(0.2)


def is_ready(metrics_address: str) -> bool:
    """What /readyz says."""
    try:
        with urllib.request.urlopen(f"http://{metrics_address}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError:
        return False


def items(plane: ControlPlane, kind: str, *more: str) -> list[Document]:
    """Objects of a kind, in all namespaces."""
    found: list[Document] = json.loads(plane.kubectl("get", kind, "-A", "-o", "json", *more))[
        "items"
    ]
    return found


def put(plane: ControlPlane, *documents: Document) -> None:
    """Apply objects."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)})
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=text)
