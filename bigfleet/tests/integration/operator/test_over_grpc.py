"""An operator and a real shard's sessions over gRPC: demand, machines, bootstrap, TLS."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random
from typing import Any

import trustme

from bigfleet.kube import EventRecorder
from bigfleet.model import MachineState, Profile
from bigfleet.observe.operator import OperatorMetrics
from bigfleet.observe.process import SystemClock
from bigfleet.operator.operator import ClusterOperator, Identity, OperatorEnvironment
from bigfleet.operator.session.grpc_dial import GrpcDial
from bigfleet.operator.watches import OperatorWatches
from bigfleet.shard.operators.grpc_server import SERVICE, add_sessions
from bigfleet.wire.server import WireServer
from bigfleet.wire.server_tls import ServerTls
from bigfleet.wire.tls import ClientTls, TlsFiles
from certificates import write_files
from kubefake import FakeApiServer
from kubeobjects import capacity_request
from operators import Desk, inline, machine

PATIENCE = 30.0
CLUSTER = "c-1"


@contextlib.asynccontextmanager
async def served(
    desk: Desk, listen: str = "127.0.0.1:0", tls: TlsFiles | None = None
) -> AsyncIterator[str]:
    server = WireServer([SERVICE], None if tls is None else ServerTls(tls))
    add_sessions(server.grpc, desk.sessions, inline)
    address = await server.start(listen)
    try:
        yield address
    finally:
        await server.stop(0)


@contextlib.asynccontextmanager
async def operating(
    api: FakeApiServer, address: str, tls: TlsFiles | None = None
) -> AsyncIterator[ClusterOperator]:
    clock, client = SystemClock(), api.client()
    credentials = None if tls is None else ClientTls(tls, clock.monotonic)
    world = OperatorEnvironment(
        client=client,
        urgent=client,
        dial=GrpcDial(address, credentials),
        clock=clock,
        metrics=OperatorMetrics(clock.monotonic, version="1"),
        events=EventRecorder(client, "operator"),
        template=None,
        rng=Random(1),
        unguessable=Random(1),
    )
    operator = ClusterOperator(Identity(CLUSTER, "1.2.3"), world)
    watches = OperatorWatches(client, operator)

    async def live() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(watches.run())
            await watches.wait_synced()
            group.create_task(operator.lead())

    life = asyncio.ensure_future(live())
    try:
        yield operator
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


def phase(api: FakeApiServer) -> Any:
    found = api.get("CapacityRequest", "cr-1", "default")
    return found and found["status"]["phase"]


def upcoming(api: FakeApiServer, name: str) -> Any:
    found = api.get("UpcomingNode", name)
    return found and found.get("status", {}).get("phase")


async def test_demand_goes_up_and_machines_come_down() -> None:
    api, desk = FakeApiServer(), Desk()
    api.put(capacity_request())
    desk.book.take(machine("m-1", MachineState.CONFIGURED, cluster=CLUSTER))
    async with served(desk) as address, operating(api, address) as operator:
        await until(lambda: phase(api) == "Acknowledged")
        await until(lambda: upcoming(api, "un-m-1") == "Ready")
        desk.book.start("m-1", MachineState.DRAINING)
        await until(lambda: upcoming(api, "un-m-1") == "Draining")
        known = desk.book.get("m-1")
        assert known is not None
        blob = await desk.sessions.bootstrap(CLUSTER, Profile(), known, PATIENCE)
        assert blob.user_data.startswith(b"#!/bin/sh")
        assert operator.connection.is_acknowledged


async def test_a_shard_that_starts_later_or_again_is_found() -> None:
    api, desk = FakeApiServer(), Desk()
    api.put(capacity_request())
    async with served(desk) as address:
        pass
    async with operating(api, address) as operator:
        await until(lambda: operator.connection.last_end != "not tried yet")
        assert phase(api) == "Pending"
        async with served(desk, address):
            await until(lambda: phase(api) == "Acknowledged")
        await until(lambda: not operator.connection.is_open)
        again = Desk()
        async with served(again, address):
            await until(lambda: again.metrics.accepted)


async def test_the_certificate_has_to_be_the_clusters_own(tmp_path: Path) -> None:
    api, desk, ca = FakeApiServer(), Desk(), trustme.CA()
    api.put(capacity_request())
    shard = write_files(tmp_path / "shard", ca, ["bigfleet://shard/s-1"])
    wrong = write_files(tmp_path / "wrong", ca, ["bigfleet://cluster/c-2"])
    right = write_files(tmp_path / "right", ca, [f"bigfleet://cluster/{CLUSTER}"])
    async with served(desk, "127.0.0.1:0", shard) as address:
        async with operating(api, address, wrong) as operator:
            await until(lambda: operator.connection.last_end.startswith("PERMISSION_DENIED"))
            assert desk.metrics.strangers
        async with operating(api, address, right):
            await until(lambda: phase(api) == "Acknowledged")
