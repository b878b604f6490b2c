"""A shard as a process: gRPC, probes and metrics around it, from start to orderly stop.

Starts with no peer reachable. Ready when it has something to decide on; alive as long as it
answers. A signal stops it: no new calls, what runs may end, and what was acknowledged is on disk.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom
from typing import Final

from bigfleet.observe.pages import component_routes, debug_routes, serve_pages
from bigfleet.observe.process import SystemClock, Threads, process_age, timer
from bigfleet.observe.tracing import Spans
from bigfleet.provider import GrpcTransport, ProviderClient, ProviderSite
from bigfleet.shard.act.audit_log import AuditLog
from bigfleet.shard.act.traces import headers
from bigfleet.shard.operators.grpc_server import add_sessions
from bigfleet.shard.peers.coordinator_caller import GrpcCaller
from bigfleet.shard.server.admin_service import SERVICE as ADMIN_SERVICE
from bigfleet.shard.server.admin_service import ShardAdminServicer
from bigfleet.shard.server.read_service import SERVICE as READ_SERVICE
from bigfleet.shard.server.read_service import ShardReadServicer
from bigfleet.shard.server.settings import ShardConfig
from bigfleet.shard.server.shard import Count, Shard, ShardEnvironment
from bigfleet.shard.server.status import Facade
from bigfleet.shard.state.disk import LocalDisk
from bigfleet.shard.state.rotating_file import RotatingFile
from bigfleet.wire.fencing import FencingStamps
from bigfleet.wire.server import WireServer
from bigfleet.wire.server_tls import ServerTls
from bigfleet.wire.tls import TlsFiles
from bigfleet_api.v1alpha1 import shardread_pb2_grpc as rpc

SESSION_SERVICE: Final = "bigfleet.v1alpha1.Shard"
_PARSING_THREADS: Final = 2
_READINESS_SECONDS: Final = 0.2
_LET_CALLS_END: Final = 1.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServerOptions:
    """Where and how a shard is served."""

    listen: str = "127.0.0.1:7780"
    metrics_addr: str = "127.0.0.1:8780"
    data_dir: Path = Path("data")
    tls: TlsFiles | None = None
    audit_log: Path | None = None
    version: str = "0"
    paused: bool = False
    """Start paused, whatever it was before."""
    spans: Spans | None = None
    """Where traces go; None for nowhere."""


@dataclass(frozen=True, slots=True)
class ServedShard:
    """A shard that is being served."""

    address: str
    shard: Shard


async def serve(
    tuning: ShardConfig,
    serving: ServerOptions,
    stop: asyncio.Event,
    on_listening: Callable[[ServedShard], None] = lambda _listening: None,
    warm_up: Callable[[], object] = lambda: None,
) -> None:
    """Serve a shard until told to stop.

    `warm_up` loads the engine's compiled code, or compiles it once after an install, which no
    session should have to wait for.
    """
    parsing, deciding = Threads("parse", _PARSING_THREADS), Threads("decide", 1)
    explaining = Threads("explain", 1)
    try:
        begun = timer()
        _log.info("loading the engine; the first time after an install compiles it")
        await deciding(warm_up)
        _log.info("engine ready", extra={"seconds": round(timer() - begun, 1)})
        shard = await Shard.open(tuning, _world(tuning, serving, parsing, deciding, explaining))
        tls = None if serving.tls is None else ServerTls(serving.tls, shard.metrics.tls_expiry)
        server = WireServer((SESSION_SERVICE, READ_SERVICE, ADMIN_SERVICE), tls)
        if serving.paused and not shard.pause.on:
            await shard.pause.pause("started with --pause")
        facade = Facade(shard)
        add_sessions(server.grpc, shard.sessions, parsing, limits=tuning.limits)
        rpc.add_ShardReadServicer_to_server(ShardReadServicer(facade, parsing), server.grpc)
        rpc.add_ShardAdminServicer_to_server(ShardAdminServicer(facade), server.grpc)
        address = await server.start(serving.listen)
        readiness, http = _Readiness(shard.not_ready()), None
        routes = component_routes(shard.metrics.registry, readiness.__str__, shard.deciding)
        routes |= debug_routes(shard.outputs.cycles, asyncio.get_running_loop())
        try:
            http = serve_pages(serving.metrics_addr, routes)
            on_listening(ServedShard(address, shard))
            await _live(shard, server, readiness, stop)
        finally:
            await server.stop(_LET_CALLS_END)
            await shard.close()
            if http is not None:
                http.close()
    finally:
        parsing.close()
        deciding.close()
        explaining.close()
        if serving.spans is not None:
            serving.spans.close()


class _Readiness:
    """Why a shard is not ready, looked up on the event loop and read by the thread of /readyz."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __str__(self) -> str:
        return self.reason

    async def follow(self, shard: Shard, server: WireServer) -> None:
        """Health says what /readyz says, until cancelled."""
        was: bool | None = None
        while True:
            self.reason = shard.not_ready()
            is_ready = not self.reason
            if is_ready is not was:
                await server.ready(is_ready)
                was = is_ready
            await asyncio.sleep(_READINESS_SECONDS)


async def _live(
    shard: Shard, server: WireServer, readiness: _Readiness, stop: asyncio.Event
) -> None:
    async with asyncio.TaskGroup() as group:
        life = group.create_task(shard.run())
        following = group.create_task(readiness.follow(shard, server))
        await stop.wait()
        await shard.stop()
        life.cancel()
        following.cancel()


def _world(
    tuning: ShardConfig,
    serving: ServerOptions,
    parsing: Threads,
    deciding: Threads,
    explaining: Threads,
) -> ShardEnvironment:
    audit = None
    if serving.audit_log is not None:
        audit = AuditLog(RotatingFile(serving.audit_log), parsing)

    def connect(site: ProviderSite, stamps: FencingStamps, count: Count) -> ProviderClient:
        _log.info(
            "dialing out-of-tree provider", extra={"provider": site.name, "address": site.address}
        )
        transport = GrpcTransport(site.address, serving.tls, headers=headers)
        return ProviderClient(site, stamps, transport, count)

    return ShardEnvironment(
        clock=SystemClock(),
        disk=LocalDisk(serving.data_dir),
        offload=parsing,
        decide_in=deciding,
        explain_in=explaining,
        # Ids only have to differ; asking the system for each would cost more than they are worth.
        rng=Random(SystemRandom().getrandbits(256)),
        connect=connect,
        timer=timer,
        cpu=time.process_time,
        caller=GrpcCaller(serving.tls) if tuning.coordinators else None,
        audit=audit,
        version=serving.version,
        age=process_age(),
        spans=serving.spans,
    )
