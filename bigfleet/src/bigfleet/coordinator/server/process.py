"""A coordinator as a process: gRPC, probes and metrics around it, from start to orderly stop.

Alive as long as it answers, whatever the store does; ready when a leader is known. A signal stops
it: another replica may lead at once, no new calls are taken, and those under way may end.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bigfleet.coordinator.leadership.election_loop import Duty
from bigfleet.coordinator.leadership.leader_state import LeaderState
from bigfleet.coordinator.leadership.ports import Rebalancer
from bigfleet.coordinator.rebalance import FleetRebalancer
from bigfleet.coordinator.server.coordinator import Coordinator, CoordinatorEnvironment
from bigfleet.coordinator.server.service import SERVICE, add_coordinator
from bigfleet.coordinator.state import StateError
from bigfleet.coordinator.store.errors import StoreError
from bigfleet.coordinator.store.interface import StateStore, StoreCounts, StorePlace
from bigfleet.coordinator.store.snapshots.exporter import Exporter, Exports
from bigfleet.observe.coordinator import CoordinatorMetrics
from bigfleet.observe.pages import component_routes, serve_pages
from bigfleet.observe.process import Clock, Offload, SystemClock, Threads
from bigfleet.wire.server import WireServer
from bigfleet.wire.server_tls import ServerTls
from bigfleet.wire.tls import TlsFiles
from bigfleet_base.addresses import Endpoint, own_address

_THREADS: Final = 4
_READINESS_SECONDS: Final = 0.1
_LET_CALLS_END: Final = 1.0
_log = logging.getLogger(__name__)

MakeStore = Callable[[StorePlace, Clock, Offload, StoreCounts], StateStore]
MakeRebalancer = Callable[[Offload, CoordinatorMetrics], Rebalancer]


@dataclass(frozen=True)
class CoordinatorOptions:
    """Where and how a coordinator is served."""

    replica: str
    place: StorePlace
    listen: str = "127.0.0.1:7790"
    advertise: str = ""
    """Where others dial it; the address it listens on where empty."""
    metrics_addr: str = "127.0.0.1:8790"
    tls: TlsFiles | None = None
    export_dir: Path | None = None
    version: str = "0"
    flags: str = "--"
    """What the names of its flags begin with."""


@dataclass(frozen=True, slots=True)
class RunningCoordinator:
    """A coordinator that is being served."""

    address: str
    coordinator: Coordinator
    metrics_address: str = ""


async def serve(
    serving: CoordinatorOptions,
    stop: asyncio.Event,
    make_store: MakeStore,
    make_rebalancer: MakeRebalancer = FleetRebalancer,
    on_listening: Callable[[RunningCoordinator], None] = lambda _listening: None,
) -> None:
    """Serve a coordinator until told to stop."""
    clock, threads, planning = SystemClock(), Threads("store", _THREADS), Threads("plan", 1)
    metrics = CoordinatorMetrics(clock.now, version=serving.version)
    store = make_store(serving.place, clock, threads, metrics)
    world = CoordinatorEnvironment(
        store=store,
        clock=clock,
        metrics=metrics,
        rebalancer=make_rebalancer(planning, metrics),
        duties=_duties(serving, store, clock, threads, metrics),
    )
    tls = None if serving.tls is None else ServerTls(serving.tls, metrics.tls_expiry)
    server = WireServer((SERVICE,), tls)
    try:
        coordinator = Coordinator(serving.replica, serving.advertise, world)
        add_coordinator(server.grpc, coordinator)
        listening = await server.start(serving.listen, f"{serving.flags}listen")
        coordinator.election.address = _address(serving, listening)
        readiness, http = _Readiness(coordinator.not_ready()), None
        try:
            routes = component_routes(metrics.registry, readiness.__str__)
            http = serve_pages(serving.metrics_addr, routes, f"{serving.flags}metrics-addr")
            _log.info("coordinator listening", extra={"id": serving.replica, "addr": listening})
            on_listening(
                RunningCoordinator(listening, coordinator, "" if http is None else http.address)
            )
            await _live(coordinator, server, readiness, stop)
        except ExceptionGroup as group:
            # What cannot be helped is told by itself, not as one of a group.
            expected = group.subgroup((StoreError, StateError))
            if expected is None:
                raise
            raise _first(expected) from group
        finally:
            await server.stop(_LET_CALLS_END)
            if http is not None:
                http.close()
    finally:
        planning.close()
        threads.close()


def _address(serving: CoordinatorOptions, listening: str) -> str:
    """Where callers of other replicas are sent."""
    bound = Endpoint.parse(listening)
    return own_address(
        serving.advertise, bound, (), socket.gethostname(), f"coordinator {serving.replica}"
    )


def _duties(
    serving: CoordinatorOptions,
    store: StateStore,
    clock: Clock,
    threads: Threads,
    metrics: CoordinatorMetrics,
) -> tuple[Duty, ...]:
    if serving.export_dir is None:
        return (_settle,)
    metrics.exports_expected()
    exporter = Exporter(store, Exports(serving.export_dir), clock, threads, metrics)

    async def export(leader_state: LeaderState) -> None:
        await exporter.run(leader_state.leadership)

    return (_settle, export)


async def _settle(_leader_state: LeaderState) -> None:
    """What was loaded is there to stay; collections need not look at it again."""
    gc.collect()
    gc.freeze()


class _Readiness:
    """Why a coordinator is not ready, looked up on the event loop and read by another thread."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __str__(self) -> str:
        return self.reason

    async def follow(self, coordinator: Coordinator, server: WireServer) -> None:
        """Health says what /readyz says, until cancelled."""
        was: bool | None = None
        while True:
            self.reason = coordinator.not_ready()
            is_ready = not self.reason
            if is_ready is not was:
                await server.ready(is_ready)
                was = is_ready
            await asyncio.sleep(_READINESS_SECONDS)


def _first(group: BaseExceptionGroup[Exception]) -> Exception:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


async def _live(
    coordinator: Coordinator, server: WireServer, readiness: _Readiness, stop: asyncio.Event
) -> None:
    async with asyncio.TaskGroup() as group:
        life = group.create_task(coordinator.run())
        following = group.create_task(readiness.follow(coordinator, server))
        await stop.wait()
        life.cancel()
        following.cancel()
